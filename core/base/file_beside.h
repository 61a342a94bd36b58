/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FILE_BESIDE_H
#define BRAID_FILE_BESIDE_H

/* A new, empty file (mode 0600) in the directory of `path`, which is to be there when it is whole.
 * Until then it has no name, so that nothing is left however its writer ends. Where the file system
 * has no such files (O_TMPFILE) it is called .braid-XXXXXX, and stays if its writer is killed. */
struct file_beside {
	int fd;	    /* closed by file_beside__done; who keeps it sets -1 */
	char *name; /* private; NULL: it has none */
};

/* 0 or a negative errno; file_beside__done has to follow either way. */
int file_beside__create(const char *path, struct file_beside *ret);

/* It gets its place, if nothing is there: else -EEXIST. */
int file_beside__place(struct file_beside *file, const char *path);

/* It takes the place, also of a file that is there. */
int file_beside__replace(struct file_beside *file, const char *path);

/* Unless it has got its place, it is gone. */
void file_beside__done(struct file_beside *file);

#endif
