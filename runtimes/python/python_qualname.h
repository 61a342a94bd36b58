/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_QUALNAME_H
#define BRAID_PYTHON_QUALNAME_H

#include <stdint.h>

/* Qualified names (`Class.method`, `outer.<locals>.inner`) for CPython before 3.11, whose code
 * objects have plain ones only: told from the source files, each of which is read once. */
struct python_sources;

struct python_sources *python_sources__new(void); /* NULL: out of memory */
/* For tests of names: the files may be younger than the process. */
void python_sources__take_any_age(struct python_sources *sources);
void python_sources__free(struct python_sources *sources); /* NULL is fine */

/* Qualified name of the code object `name` (co_name, also "<lambda>", "<listcomp>", "<genexpr>",
 * "<dictcomp>", "<setcomp>") of source `path` as process `pid` sees it. `first_line` is
 * co_firstlineno, or a line within the code object: then the innermost one of that name is meant.
 * NULL where it cannot be told for certain: no source that could be read, nothing of that name
 * there, or several things. Borrowed until the next call. */
const char *python_sources__qualname(struct python_sources *sources, uint32_t pid, const char *path,
				     const char *name, uint32_t first_line);

#endif
