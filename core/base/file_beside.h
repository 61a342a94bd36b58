/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FILE_BESIDE_H
#define BRAID_FILE_BESIDE_H

/* A new, empty file (mode 0600) in the directory of `path`, which appears at `path` once complete.
 * Until then it has no name (O_TMPFILE), so that nothing is left however its writer ends. File
 * systems without such files give it the name .braid-XXXXXX; it stays if its writer is killed. */
struct file_beside {
	int fd;	    /* file_beside__done() closes it; a new owner of the descriptor sets -1 */
	char *name; /* private; NULL: the file has no name */
};

/* Returns 0 or a negative errno. The caller must call file_beside__done() in both cases. */
int file_beside__create(const char *path, struct file_beside *ret);

/* Moves the file to @path. Returns -EEXIST if a file exists there. */
int file_beside__place(struct file_beside *file, const char *path);

/* Moves the file to @path and replaces a file there. */
int file_beside__replace(struct file_beside *file, const char *path);

/* Closes the file, and removes it unless it was moved to its place. */
void file_beside__done(struct file_beside *file);

#endif
