/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PUSH_STATE_H
#define BRAID_PUSH_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "core/base/err.h"

/* The samples that a server acknowledged, by recording, in a file that is replaced as a whole. Only
 * one process can have the file open. */

enum push_progress {
	PUSH_PENDING,
	PUSH_DONE,    /* all samples were sent */
	PUSH_REFUSED, /* refused by the server, or unreadable: not tried again */
	PUSH_PROGRESS_N,
};

struct push_entry {
	char *name; /* name of the file in its directory */
	enum push_progress progress;
	uint64_t acknowledged;		/* number of samples, from the first one */
	uint64_t size, mtime_ns, inode; /* properties of the file at the last check */
	bool present;			/* for the user of the struct: the file exists */
};

struct push_state {
	char *path;
	int fd; /* locked */
	char *target;
	struct push_entry **entries; /* sorted by name */
	size_t n, cap;
	uint64_t removed; /* recordings that were removed before all samples were acknowledged */
};

/* Opens the state for @target; a file about another target is refused with -EINVAL. Returns -EBUSY
 * if another process has the file, -EBADMSG if it is damaged, or an error of writing to the
 * directory. The caller must call push_state__close() also on failure. */
int push_state__open(const char *path, const char *target, struct push_state *ret, struct err *err);
void push_state__close(struct push_state *state);

/* Writes a new file and renames it. On failure the old file stays. */
int push_state__save(struct push_state *state, struct err *err);

/* Finds or adds the entry @name, borrowed until it is dropped. Resets the entry if the file is
 * another one. NULL: out of memory. */
struct push_entry *push_state__entry(struct push_state *state, const char *name,
				     const struct stat *st);

/* Drops the entries of missing files. Counts and returns the pending ones among them. */
size_t push_state__drop_absent(struct push_state *state);

#endif
