/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_PYTHON_ROOTS_H
#define BRAID_TESTS_PYTHON_ROOTS_H

#include <sys/stat.h>

#include "tests/unit/pythons.h"
#include "tests/unit/workdir.h"

/* The interpreters of pythons.h. BRAID_EVERY_INTERPRETER adds the interpreters in /opt, those built
 * for tests (scripts/test-pythons), and those of other Debian releases in the test roots
 * (scripts/test-roots). An interpreter of a test root is run by its own dynamic linker, by a script
 * in the working directory, so no chroot is needed. */

static inline void pythons__try_root(struct pythons *pythons, const char *path, size_t root_len)
{
	char name[64], command[160], text[4096];
	glob_t linker = { 0 };
	int root = root_len;

	snprintf(text, sizeof(text), "%.*s/lib/x86_64-linux-gnu/ld-*.so*", root, path);
	if (glob(text, 0, NULL, &linker) == 0) {
		snprintf(name, sizeof(name), "python%zu", pythons->n);
		snprintf(text, sizeof(text),
			 "#!/bin/sh\nPYTHONHOME='%.*s/usr' exec '%s' --library-path "
			 "'%.*s/usr/lib/x86_64-linux-gnu:%.*s/lib/x86_64-linux-gnu' '%s' \"$@\"\n",
			 root, path, linker.gl_pathv[0], root, path, root, path, path);
		workdir__write(name, text);
		snprintf(command, sizeof(command), "%s/%s", workdir, name);
		chmod(command, 0700);
		pythons__try(pythons, command);
	}
	globfree(&linker);
}

static inline void pythons__in_roots(char *buf, size_t size, const char *pattern)
{
	const char *roots = getenv("BRAID_TEST_ROOTS"), *cache = getenv("XDG_CACHE_HOME");

	snprintf(buf, size, "%s%s/%s",
		 roots	 ? roots
		 : cache ? cache
			 : "~/.cache",
		 roots ? "" : "/braid-tests", pattern);
}

static inline void pythons__find_everywhere(struct pythons *pythons)
{
	glob_t found = { 0 };
	char pattern[4096];

	pythons__find(pythons);
	if (!every_interpreter())
		return;
	glob("/opt/*/bin/python3", 0, NULL, &found);
	pythons__in_roots(pattern, sizeof(pattern), "pythons/*/bin/python3");
	glob(pattern, GLOB_TILDE | GLOB_APPEND, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++)
		pythons__try(pythons, found.gl_pathv[i]);
	globfree(&found);
	pythons__in_roots(pattern, sizeof(pattern), "*/usr/bin/python3.*");
	glob(pattern, GLOB_TILDE, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++)
		pythons__try_root(pythons, found.gl_pathv[i],
				  strstr(found.gl_pathv[i], "/usr/bin/python3.") -
					  found.gl_pathv[i]);
	globfree(&found);
}

/* The interpreter's own report: its version, and its file. */
struct python_facts {
	char version[32];
	char path[256];
	int has_no_gil;
};

static inline bool python_facts__ask(const char *command, struct python_facts *ret)
{
	char ask[1024];
	FILE *pipe;
	int n;

	snprintf(ask, sizeof(ask), "%s tests/tools/python_facts.py 2>/dev/null", command);
	pipe = popen(ask, "r");
	n = pipe ? fscanf(pipe, "%31s %255s %d", ret->version, ret->path, &ret->has_no_gil) : 0;
	if (pipe)
		pclose(pipe);
	return n == 3;
}

#endif
