/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_PYTHONS_H
#define BRAID_TESTS_PYTHONS_H

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

/* The machine's own CPython: python3 of PATH and of the system. With BRAID_EVERY_INTERPRETER, as
 * scripts/check-long sets it, every one of 3.6 or later. These are python3.X of PATH, those of
 * pyenv, and the commands that BRAID_PYTHONS lists, separated by ':'. */

#define PYTHONS_MAX 64
#define PYTHON_ASK                                                                          \
	"import sys, os; v = sys.version_info; sys.implementation.name == 'cpython' and v " \
	">= (3, 6) and print(v[1], os.path.realpath(sys.executable))"

struct python {
	char command[256];
	char executable[256]; /* symbolic links resolved */
	unsigned int minor;
};

struct pythons {
	struct python list[PYTHONS_MAX];
	size_t n;
};

static inline bool every_interpreter(void)
{
	return getenv("BRAID_EVERY_INTERPRETER");
}

/* Adds the interpreter of @command. Does nothing if @command is not a usable interpreter, or if the
 * list has the interpreter already. */
static inline void pythons__try(struct pythons *pythons, const char *command)
{
	struct python *python = &pythons->list[pythons->n];
	char ask[1024];
	bool good;
	FILE *pipe;

	if (!*command || pythons->n == PYTHONS_MAX)
		return;
	snprintf(python->command, sizeof(python->command), "%s", command);
	snprintf(ask, sizeof(ask), "%s -I -c \"%s\" 2>/dev/null", command, PYTHON_ASK);
	pipe = popen(ask, "r");
	if (!pipe)
		return;
	good = fscanf(pipe, "%u %255s", &python->minor, python->executable) == 2;
	if (pclose(pipe) != 0 || !good)
		return;
	for (size_t i = 0; i < pythons->n; i++)
		if (!strcmp(pythons->list[i].executable, python->executable))
			return;
	pythons->n++;
}

static inline void pythons__find(struct pythons *pythons)
{
	const char *extra = getenv("BRAID_PYTHONS");
	char *list, *save = NULL, command[32];
	glob_t found = { 0 };

	pythons->n = 0;
	pythons__try(pythons, "python3");
	pythons__try(pythons, "/usr/bin/python3");
	if (!every_interpreter())
		return;
	list = strdup(extra ? extra : "");
	for (unsigned int minor = 6; minor < 20; minor++) {
		snprintf(command, sizeof(command), "python3.%u", minor);
		pythons__try(pythons, command);
	}
	glob("/usr/local/bin/python3", 0, NULL, &found);
	glob("~/.pyenv/versions/3.*/bin/python3", GLOB_TILDE | GLOB_APPEND, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++)
		pythons__try(pythons, found.gl_pathv[i]);
	globfree(&found);
	for (char *at = strtok_r(list, ":", &save); at; at = strtok_r(NULL, ":", &save))
		pythons__try(pythons, at);
	free(list);
}

#endif
