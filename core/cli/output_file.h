/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUTPUT_FILE_H
#define BRAID_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "core/base/err.h"
#include "core/base/file_beside.h"

/* The file that -o names. What is written goes to a new file beside it, which takes its place when
 * it is whole: until then, and if anything fails, what was there stays as it was, and nothing of
 * the new file.
 *
 * A file that is replaced hands on its mode, and its owner as far as one may give files away. A
 * symbolic link stays, and what it leads to is replaced. Directories, links that lead nowhere and
 * files that one may not write are refused with -EISDIR, -ENOENT and -EACCES; unless `force`, so
 * are recordings and all that is no regular file, with -EEXIST. What is forced and no regular file
 * is written into. Where the path is what standard output is already, that is written to. */
struct output_file {
	FILE *stream;
	char *path; /* private; NULL: there is no new file */
	struct file_beside beside;
};

/* Looks without writing anything, so that long work is not begun in vain. 0 or a negative errno. */
int output_file__check(const char *path, bool force, struct err *err);

/* NULL for `path`: standard output. 0, and output_file__close must follow; or a negative errno. One
 * at a time. */
int output_file__open(const char *path, bool force, struct output_file *ret, struct err *err);

/* `code` is what writing returned: unless it is 0, nothing takes the place of anything. Returns it,
 * or a negative errno if the last of it cannot be written. */
int output_file__close(struct output_file *file, int code);

#endif
