/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUTPUT_FILE_H
#define BRAID_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/base/file_beside.h"

/* An output file. It is written beside its place and renamed: until then, and if anything fails,
 * the file that is there stays.
 *
 * A file that is replaced hands on its mode and, as far as that is permitted, its owner. Refused
 * are
 *
 *   directories, links that lead nowhere, files that are not writable: always
 *   links and pipes that another user may have put there (core/base/foreign_path.h): always
 *   recordings, block devices, such files of another user: unless `force`
 *   a name that is not `given`: if anything but a page of braid is there; unless `force` also if
 *   that is another file of the user's; always if it is no regular file, which a link is not
 *
 * A page of braid at a name that is not `given` is kept as `path`.old, over an older page. The
 * output is refused if another file has that name.
 *
 * A symbolic link that is followed stays, and its target is replaced. Pipes and devices are written
 * into; so is standard output, where the path is a name of it. */
struct output_place {
	const char *path; /* NULL: standard output */
	bool given;	  /* by -o; false: it is the name that braid takes by itself */
	bool force;
	mode_t mode; /* permissions of the recording that it is made of; 0: of new files */
};

struct output_file {
	FILE *stream;
	char *path; /* private; NULL: there is no new file */
	struct file_beside beside;
	bool given;
	dev_t dev; /* of the file that was there */
	ino_t ino; /* 0: there was none */
};

/* Does the file at @path begin as braid's pages do? */
bool output_file__is_page(const char *path);

/* Finds the errors of output_file__open() without writing. Returns 0 or a negative errno. */
int output_file__check(const struct output_place *place, struct err *err);

/* Returns 0, after which output_file__close() must follow, or a negative errno. One file may be
 * open at a time. */
int output_file__open(const struct output_place *place, struct output_file *ret, struct err *err);

/* Puts the file into its place if @code, the result of writing, is 0. Returns @code, or a negative
 * errno if the last bytes cannot be written or the place cannot be taken. */
int output_file__close(struct output_file *file, int code);

#endif
