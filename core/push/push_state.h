/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PUSH_STATE_H
#define BRAID_PUSH_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "core/base/err.h"

/* What a server has acknowledged of recordings, in a file that is replaced as a whole. Who has it
 * open is the only one. */

enum push_progress {
	PUSH_PENDING,
	PUSH_DONE,    /* all of it */
	PUSH_REFUSED, /* by the server, or it cannot be read: not tried again */
	PUSH_PROGRESS_N,
};

struct push_entry {
	char *name; /* of the file in its directory */
	enum push_progress progress;
	uint64_t acknowledged;		/* samples, from the first one on */
	uint64_t size, mtime_ns, inode; /* of the file when it was looked at */
	bool present;			/* for who uses it: it is there now */
};

struct push_state {
	char *path;
	int fd; /* locked */
	char *target;
	struct push_entry **entries; /* by name */
	size_t n, cap;
	uint64_t removed; /* recordings that were gone before all of them was acknowledged */
};

/* `target`: what it is about; a file about another one is refused with -EINVAL. -EBUSY: another
 * process has it; -EBADMSG: damaged; errors of writing to the directory. Call push_state__close in
 * any case. */
int push_state__open(const char *path, const char *target, struct push_state *ret, struct err *err);
void push_state__close(struct push_state *state);

/* Writes it beside and renames it. On failure the old one stays. */
int push_state__save(struct push_state *state, struct err *err);

/* The entry of that name, made if there is none. What is known of another file of that name is
 * forgotten. NULL: out of memory. Borrowed until it is dropped. */
struct push_entry *push_state__entry(struct push_state *state, const char *name,
				     const struct stat *st);

/* Forgets what is not present, and counts what of it was pending. */
size_t push_state__drop_absent(struct push_state *state);

#endif
