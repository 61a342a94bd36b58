/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_IDLE_MATCH_H
#define BRAID_IDLE_MATCH_H

#include "core/profile/recorded.h"
#include "runtimes/idle.h"

struct idle_frame {
	const char *function, *file; /* "": unknown */
	int kind;		     /* KIND_KERNEL, ... */
};

/* A thread that waits, wherever that is stored. */
struct idle_wait {
	const char *thread; /* its name; NULL: unknown */
	int syscall;
	size_t n_frames;
	const void *ctx; /* of the hooks */
	/* Frames count from the root. */
	void (*get_frame)(const void *ctx, size_t i, struct idle_frame *ret);
	/* Returns true if a frame is in a file whose name fits the pattern. */
	bool (*has_image)(const void *ctx, const char *pattern);
};

/* Returns true if a rule describes the wait. @rules as for idle__matches(). */
bool idle__fits(const struct idle_rule *const *rules, const struct idle_wait *wait);

/* Returns true if the name of a file fits the pattern of a rule. */
bool idle__is_image(const char *pattern, const char *name);

/* Is this wait idle? `stack`: one that the thread waits with; `frames`: those of the profile that
 * it is shown as, root first. `rules`: arrays, each with an empty rule at its end; the last one is
 * NULL. */
bool idle__matches(const struct idle_rule *const *rules, const struct recorded *recorded,
		   const struct recorded_stack *stack, const struct profile *profile,
		   const uint32_t *frames, size_t n);

#endif
