/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FOREIGN_PATH_H
#define BRAID_FOREIGN_PATH_H

#include <stdbool.h>
#include <sys/stat.h>

/* Names that another user may have placed where an output file goes: symbolic links, files and
 * pipes in a directory that others may write, such as /tmp. The kernel's fs.protected_symlinks and
 * fs.protected_regular prevent a part of such attacks where they are set. */

/* Returns true if only the caller can have made entries of the directory of @path. The directory
 * then belongs to the caller, to root or to the user who called sudo, and no other user may write
 * it. Returns false as well if the directory is unreadable. */
bool foreign_path__is_private(const char *path);

/* Returns true if the entry at @path, which @st describes, belongs to another user who may have put
 * it there. */
bool foreign_path__is_foreign(const char *path, const struct stat *st);

/* Follows symbolic links at the end of @path. *@ret is a path that does not end in a link, whether
 * or not a file exists there; the caller frees it. Returns 0, -EACCES for a foreign link, -ELOOP,
 * -ENOMEM or another negative errno. */
int foreign_path__resolve(const char *path, char **ret);

#endif
