/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUTPUT_FILE_H
#define BRAID_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/base/file_beside.h"

/* An output file. It is written beside its place and renamed. Until then, and after any failure, an
 * existing file stays.
 *
 * A replaced file passes on its mode and, if permitted, its owner. Refused are
 *
 *   directories, links to missing files, files that are not writable: always
 *   links and pipes that another user may have placed (core/base/foreign_path.h): always
 *   recordings, block devices, such files of another user: unless `force`
 *   a name that is not `given`: if a file other than a page of braid exists there. `force`
 *   permits the user's other regular files; links and other files are always refused
 *
 * A page of braid at a name that is not `given` is moved to `path`.old, over an older page. The
 * output is refused if another file has that name.
 *
 * A symbolic link that is followed stays, and its target is replaced. Pipes and devices are written
 * to directly, and so is standard output, if the path is a name of it. */
struct output_place {
	const char *path; /* NULL: standard output */
	bool given;	  /* by -o; false: braid's default name */
	bool force;
	mode_t mode; /* permissions of the recording; 0: default */
};

struct output_file {
	FILE *stream;
	char *path; /* private; NULL: there is no new file */
	struct file_beside beside;
	bool given;
	dev_t dev; /* existing file */
	ino_t ino; /* 0: no existing file */
};

/* Returns true if the file at @path begins as braid's pages do. */
bool output_file__is_page(const char *path);

/* Finds the errors of output_file__open() without writing. Returns 0 or a negative errno. */
int output_file__check(const struct output_place *place, struct err *err);

/* Returns 0, after which output_file__close() must follow, or a negative errno. One file may be
 * open at a time. */
int output_file__open(const struct output_place *place, struct output_file *ret, struct err *err);

/* Moves the file to its place if @code, the result of writing, is 0. Returns @code, or a negative
 * errno if the last bytes cannot be written or the move fails. */
int output_file__close(struct output_file *file, int code);

#endif
