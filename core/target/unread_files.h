/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_UNREAD_FILES_H
#define BRAID_UNREAD_FILES_H

#include "core/target/procfs.h"

/* Files with code that cannot be opened, each counted once. Nothing but the position of that code
 * is available. */
struct unread_files;

struct unread_files *unread_files__new(void);	     /* NULL: out of memory */
void unread_files__free(struct unread_files *files); /* NULL is fine */

/* Adds the file of @mapping. @code is the error of the open. Ignored if the process has ended. */
void unread_files__add(struct unread_files *files, uint32_t pid,
		       const struct procfs_mapping *mapping, int code);

/* Removes a file that was opened later. */
void unread_files__remove(struct unread_files *files, const struct procfs_mapping *mapping);

unsigned unread_files__count(const struct unread_files *files);

/* Return the first file, as the target sees it (the caller must escape it), and the missing
 * privilege or other reason. There must be one. */
const char *unread_files__first(const struct unread_files *files, uint32_t *ret_pid);
void unread_files__why(const struct unread_files *files, char *ret, size_t size);

#endif
