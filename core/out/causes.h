/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CAUSES_H
#define BRAID_CAUSES_H

#include <stdbool.h>

#include "core/profile/profile.h"

/* The causes of a profile's time: the CPU, or a wait for some object, each with its function.
 *
 * A cause's function is the innermost one that the user has written. If there is none, it is the
 * innermost one of a runtime, otherwise the innermost native one outside the C library. */

struct cause {
	const char *what; /* object of the wait; NULL: CPU */
	uint32_t frame;	  /* frame of the function, at its line with most weight, + 1; 0: unknown */
	uint64_t weight, line_weight;
	bool lock;
};

#define CAUSE_LOCK_BYTES 80

struct causes {
	const struct profile *profile;
	struct cause *list; /* those with most weight first */
	size_t n;
	uint64_t cpu, waiting, preempted, locks, native;
	char locks_of[KINDS_MAX][CAUSE_LOCK_BYTES]; /* "the lock of NAME", by kind */
};

/* Collects the causes of the time of @n nodes (NULL: all). In @profile, the outermost
 * label of each stack, or the one before its frames, is its state (PROFILE_BY_STATE); it has all
 * frames and their lines. The caller calls causes__done() in any case. Returns 0 or -ENOMEM. */
int causes__init(struct causes *causes, const struct profile *profile, const uint32_t *nodes,
		 size_t n);
void causes__done(struct causes *causes);

#endif
