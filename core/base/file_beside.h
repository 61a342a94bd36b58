/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FILE_BESIDE_H
#define BRAID_FILE_BESIDE_H

/* A new, empty file in the directory of `path`, to be renamed to it when it is whole: mode 0600, a
 * name that nothing else has. Returns its descriptor and its path (the caller frees it), or a
 * negative errno. */
int file_beside__create(const char *path, char **ret_beside);

#endif
