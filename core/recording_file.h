/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDING_FILE_H
#define BRAID_RECORDING_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

/* The file of a recording seen from outside: is it one, may it be replaced. */

/* Looks at the file's header only. 0 and its schema version; -ENOENT; -EBADMSG: no recording
 * (a directory, another format, an empty file); any other errno of open. */
int recording_file__identify(const char *path, uint32_t *ret_version, struct err *err);

/* Creates an empty file at `path` and marks it as being written, as recording__create promises:
 * a recording that was there is now `path`.old, and `ret_moved` is true. The mark lasts as long as
 * `ret_fd` is open; SQLite's locks on the file, too, so close it last. */
int recording_file__claim(const char *path, bool force, int *ret_fd, bool *ret_moved,
			  struct err *err);

/* Undoes a claim: removes the new file and moves the old one back. */
void recording_file__abandon(const char *path, bool moved);

/* `path` in a form that SQLite takes for nothing but a file name (":memory:"). NULL: no memory. */
char *recording_file__sqlite_path(const char *path);

#endif
