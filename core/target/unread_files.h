/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_UNREAD_FILES_H
#define BRAID_UNREAD_FILES_H

#include "core/target/procfs.h"

/* Files with code that cannot be opened, each counted once: nothing can be said of that code but
 * where it is. */
struct unread_files;

struct unread_files *unread_files__new(void);	     /* NULL: out of memory */
void unread_files__free(struct unread_files *files); /* NULL is fine */

/* `code`: why it cannot be opened. A process that has ended is no reason to complain. */
void unread_files__add(struct unread_files *files, uint32_t pid,
		       const struct procfs_mapping *mapping, int code);

/* The file has been opened after all. */
void unread_files__remove(struct unread_files *files, const struct procfs_mapping *mapping);

unsigned unread_files__count(const struct unread_files *files);

/* The first of them, as the target sees it, so escape it; and what is missing, or why else it is
 * so. Only if there is one. */
const char *unread_files__first(const struct unread_files *files, uint32_t *ret_pid);
void unread_files__why(const struct unread_files *files, char *ret, size_t size);

#endif
