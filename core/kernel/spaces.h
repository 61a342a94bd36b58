/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SPACES_H
#define BRAID_SPACES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/shared.h"

/* Address spaces, as the kernel half numbers them, each with the mappings that it reads. Adding one
 * to the kernel's map of maps waits for an RCU grace period (tens of ms). A new program would
 * meanwhile run without unwind tables. So some spaces are created in advance, and free ones are
 * reused. */
struct spaces;

/* a runtime's file in an address space */
struct runtime_copy {
	uint64_t bias;	/* bias of its mapping */
	int runtime;	/* index of the runtime */
	int32_t number; /* number among the runtime's attached copies; -1: not attached */
};
#define RUNTIME_COPIES_MAX 16

struct space {
	uint32_t id;
	uint32_t refs;		   /* number of processes: a forked child shares its parent's space
				    * until it maps other files */
	uint32_t decided;	   /* bit n: runtimes[n] was attached or refused */
	uint32_t pending;	   /* bit n: runtimes[n] requested another try */
	uint32_t reported_pending; /* ... and this was reported to the user */
	uint64_t pending_ns;	   /* time of the first such request */
	uint32_t expected;	   /* bit n: the files that runtimes[n] will load were read */
	uint32_t attached;	   /* bit n: runtimes[n] was attached */
	uint32_t unwalked;	   /* ... and has no walker for the version: only a map, if any */
	uint32_t walkers;	   /* bits of slots; WALKERS_CONTEXT */
	bool awaits_context; /* the place of the variable of request contexts is not set yet */
	struct runtime_copy copies[RUNTIME_COPIES_MAX]; /* attached or refused copies */
	uint32_t n_copies;
	struct mappings_rec *shared; /* mapped; read by the kernel half */
	struct space *next;	     /* next one in the list of free spaces */
};

/* @mappings_fd: the map of maps; borrowed. */
int spaces__new(int mappings_fd, struct spaces **ret);
void spaces__free(struct spaces *spaces); /* NULL is fine; frees all spaces */

/* Returns a free space with one reference and without mappings. Returns 0, -ENOMEM, or an error of
 * creating a map. */
int spaces__take(struct spaces *spaces, struct space **ret);

/* Returns a space without references to the list. The space that was free for the longest time is
 * used next: the last samples of an old owner should not find mappings of a new one. */
void spaces__give(struct spaces *spaces, struct space *space);

/* Creates spaces in advance if there are few. May wait; to be called at quiet moments. */
int spaces__refill(struct spaces *spaces);

#endif
