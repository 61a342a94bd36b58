/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OTHER_ROWS_H
#define BRAID_OTHER_ROWS_H

#include <stdint.h>

/* Language runtimes without a walker: the means to recognize a file of each, and facts for the
 * user. A file is recognized by its contents, never by its name. */

#define OTHER_GIVEN_MAX 5

struct other_row {
	const char *name;  /* as shown: "Erlang (BEAM)" */
	const char *shown; /* shown and missing frames, in words */
	const char *map;   /* option that makes the runtime write a map; NULL: unknown */
	/* Texts in the arguments or the environment of a process that writes a map. */
	const char *given[OTHER_GIVEN_MAX];
	const char *missing; /* frames that are missing with a map; NULL: none */
	/* Use of frame pointers by its compiler (runtime_verdict). 0: none, or not always. */
	unsigned int keeps;
	uint64_t generated_bytes;
	const char *source; /* source of the rule, of the option and of the form of the names */
};

enum other_kind {
	OTHER_ELECTRON,
	OTHER_DENO,
	OTHER_V8,
	OTHER_BUN,
	OTHER_DOTNET,
	OTHER_MONO,
	OTHER_BEAM,
	OTHER_LUAJIT,
	OTHER_LUA,
	OTHER_PYPY,
	OTHER_OCAML,
	OTHER_OCAML_BYTECODE,
	OTHER_GHC,
	OTHER_GUILE,
	OTHER_RACKET,
	OTHER_R,
	OTHER_JULIA,
	OTHER_DART,
	OTHER_GRAAL,
	OTHER_SBCL,
	OTHER_KINDS_N,
	OTHER_NODE_API, /* one of the first three, by a text of the file */
	OTHER_NONE,
};

/* Returns the row of @kind, which is below OTHER_KINDS_N. */
const struct other_row *other_rows__get(enum other_kind kind);

#endif
