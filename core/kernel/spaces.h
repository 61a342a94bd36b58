/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SPACES_H
#define BRAID_SPACES_H

#include <stdint.h>

#include "bpf/shared.h"

/* Address spaces, as the kernel half numbers them, each with the mappings that it reads. Adding one
 * to the kernel's map of maps waits for an RCU grace period, tens of milliseconds in which a new
 * program runs on without unwind tables: so some are kept ready, and used again when free. */
struct spaces;

/* A runtime's file in an address space. */
struct runtime_copy {
	uint64_t bias;	/* of its mapping */
	int runtime;	/* index */
	int32_t number; /* among those of the runtime that are attached; -1: it is not */
};
#define RUNTIME_COPIES_MAX 16

struct space {
	uint32_t id;
	uint32_t refs;		   /* processes: a forked child shares its parent's until it
				    * maps something else */
	uint32_t decided;	   /* bit n: runtimes[n] was attached or refused */
	uint32_t pending;	   /* bit n: runtimes[n] asked to be tried again */
	uint32_t reported_pending; /* ... and the user was told so */
	uint64_t pending_ns;	   /* since when */
	uint32_t attached;	   /* bit n: runtimes[n] was attached */
	uint32_t unwalked;	   /* ... and has no walker for the version: only a map, if any */
	uint32_t walkers;	   /* slots */
	struct runtime_copy copies[RUNTIME_COPIES_MAX]; /* what was attached, or refused */
	uint32_t n_copies;
	struct mappings_rec *shared; /* mapped: the kernel half reads it */
	struct space *next;	     /* in the list of free ones */
};

/* `mappings_fd`: the map of maps; borrowed. */
int spaces__new(int mappings_fd, struct spaces **ret);
void spaces__free(struct spaces *spaces); /* NULL is fine; frees all spaces */

/* One with a single reference and nothing mapped. -ENOMEM or what creating a map returns. */
int spaces__take(struct spaces *spaces, struct space **ret);

/* Takes one back that has no reference left. The one that was free for longest is used next, so
 * that the kernel half does not meet a new owner's mappings in the last samples of an old one. */
void spaces__give(struct spaces *spaces, struct space *space);

/* Makes sure that some are ready. May wait; for quiet moments. */
int spaces__refill(struct spaces *spaces);

#endif
