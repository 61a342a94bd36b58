/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_RUBIES_H
#define BRAID_TESTS_RUBIES_H

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/util.h"
#include "tests/unit/workdir.h"

/* The machine's own CRuby, of PATH. With BRAID_EVERY_INTERPRETER, as scripts/check-long sets it,
 * every CRuby. These are the system's, those of rbenv, /opt and ~/.cache/braid-rubies, and those of
 * other Debian releases in test roots (scripts/test-roots). An interpreter of a test root is run by
 * its own dynamic linker, by a script in the working directory, so no chroot is needed. */

#define RUBIES_MAX 32
/* Prints its version and its file, which is a library or the program. */
#define RUBY_ASK                                                                             \
	"files = File.readlines(\"/proc/self/maps\").map { |line| line.split[5] }.compact; " \
	"RUBY_ENGINE == \"ruby\" and puts RUBY_VERSION, files.grep(%r{/libruby}).first || "  \
	"files.grep(%r{/ruby[^/]*\\z}).first"

struct ruby {
	char command[256]; /* runs without gems, which are missing for interpreters of test roots */
	char file[256];
	char version[16];
};

struct rubies {
	struct ruby list[RUBIES_MAX];
	size_t n;
};

/* Adds the CRuby of @command. Does nothing if @command is not a usable CRuby, or if the list has
 * the CRuby already. */
static inline void rubies__try(struct rubies *rubies, const char *command)
{
	struct ruby *ruby = &rubies->list[rubies->n];
	char ask[1024];
	bool good;
	FILE *pipe;

	if (rubies->n == RUBIES_MAX)
		return;
	snprintf(ruby->command, sizeof(ruby->command), "%s", command);
	snprintf(ask, sizeof(ask), "%s --disable=gems -e '%s' 2>/dev/null", command, RUBY_ASK);
	pipe = popen(ask, "r");
	if (!pipe)
		return;
	good = fscanf(pipe, "%15s %255s", ruby->version, ruby->file) == 2;
	if (pclose(pipe) != 0 || !good)
		return;
	for (size_t i = 0; i < rubies->n; i++)
		if (!strcmp(rubies->list[i].file, ruby->file))
			return;
	rubies->n++;
}

static inline void rubies__try_root(struct rubies *rubies, const char *path, size_t root_len)
{
	char name[64], command[160], text[4096];
	glob_t linker = { 0 };
	int root = root_len;

	snprintf(text, sizeof(text), "%.*s/lib/x86_64-linux-gnu/ld-*.so*", root, path);
	if (glob(text, 0, NULL, &linker) == 0) {
		snprintf(name, sizeof(name), "ruby%zu", rubies->n);
		snprintf(text, sizeof(text),
			 "#!/bin/sh\nexec '%s' --library-path "
			 "'%.*s/usr/lib/x86_64-linux-gnu:%.*s/lib/x86_64-linux-gnu' '%s' \"$@\"\n",
			 linker.gl_pathv[0], root, path, root, path, path);
		workdir__write(name, text);
		snprintf(command, sizeof(command), "%s/%s", workdir, name);
		chmod(command, 0700);
		rubies__try(rubies, command);
	}
	globfree(&linker);
}

static inline void rubies__find(struct rubies *rubies)
{
	const char *roots = getenv("BRAID_TEST_ROOTS"), *cache = getenv("XDG_CACHE_HOME");
	static const char in_root[] = "/usr/bin/ruby[1-9]";
	glob_t found = { 0 };
	char pattern[4096];

	rubies->n = 0;
	if (!cache)
		cache = "~/.cache";
	rubies__try(rubies, "ruby");
	if (!getenv("BRAID_EVERY_INTERPRETER"))
		return;
	glob("/usr/bin/ruby[1-9]*", 0, NULL, &found);
	glob("/usr/local/bin/ruby", GLOB_APPEND, NULL, &found);
	glob("/opt/*/bin/ruby", GLOB_APPEND, NULL, &found);
	glob("~/.rbenv/versions/*/bin/ruby", GLOB_TILDE | GLOB_APPEND, NULL, &found);
	snprintf(pattern, sizeof(pattern), "%s/braid-rubies/*/bin/ruby", cache);
	glob(pattern, GLOB_TILDE | GLOB_APPEND, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++)
		rubies__try(rubies, found.gl_pathv[i]);
	globfree(&found);
	snprintf(pattern, sizeof(pattern), "%s/braid-rubies/*%s*", cache, in_root);
	glob(pattern, GLOB_TILDE, NULL, &found);
	snprintf(pattern, sizeof(pattern), "%s%s/*%s*", roots ? roots : cache,
		 roots ? "" : "/braid-tests", in_root);
	glob(pattern, GLOB_TILDE | GLOB_APPEND, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++)
		rubies__try_root(rubies, found.gl_pathv[i],
				 strstr(found.gl_pathv[i], "/usr/bin/ruby") - found.gl_pathv[i]);
	globfree(&found);
}

#endif
