/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_QUALNAME_H
#define BRAID_PYTHON_QUALNAME_H

#include <stdint.h>

/* Qualified names (`Class.method`, `outer.<locals>.inner`) for CPython before 3.11, whose code
 * objects have plain names only. They come from the source files, each of which is read once. */
struct python_sources;

struct python_sources *python_sources__new(void); /* NULL: out of memory */
/* For tests of names: the files may be younger than the process. */
void python_sources__take_any_age(struct python_sources *sources);
void python_sources__free(struct python_sources *sources); /* NULL is fine */

/* Returns the qualified name of the code object `name` (co_name, also "<lambda>", "<listcomp>",
 * "<genexpr>", "<dictcomp>", "<setcomp>") of source `path` as process `pid` sees it. `first_line`
 * is co_firstlineno, or a line within the innermost code object of that name. Returns NULL if the
 * name is not certain: the source is unreadable, or has none or several of that name. Borrowed
 * until the next call. */
const char *python_sources__qualname(struct python_sources *sources, uint32_t pid, const char *path,
				     const char *name, uint32_t first_line);

#endif
