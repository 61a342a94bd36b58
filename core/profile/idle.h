/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_IDLE_MATCH_H
#define BRAID_IDLE_MATCH_H

#include "core/profile/recorded.h"
#include "runtimes/idle.h"

struct idle_frame {
	const char *function, *file; /* "": unknown */
	int kind;		     /* KIND_KERNEL, ... */
};

/* a wait of a thread, from any source */
struct idle_wait {
	const char *thread; /* its name; NULL: unknown */
	int syscall;
	size_t n_frames;
	const void *ctx; /* context of the hooks */
	/* Frames count from the root. */
	void (*get_frame)(const void *ctx, size_t i, struct idle_frame *ret);
	/* Returns true if a frame is in a file whose name fits the pattern. */
	bool (*has_image)(const void *ctx, const char *pattern);
};

/* Returns true if a rule describes the wait. @rules as for idle__matches(). */
bool idle__fits(const struct idle_rule *const *rules, const struct idle_wait *wait);

/* Returns true if the name of a file fits the pattern of a rule. */
bool idle__is_image(const char *pattern, const char *name);

/* Returns true if the wait is idle. @stack is a stack that the thread waits with; @frames are the
 * frames of the profile that show it, root first. @rules: arrays, each with an empty rule at its
 * end; the last pointer is NULL. */
bool idle__matches(const struct idle_rule *const *rules, const struct recorded *recorded,
		   const struct recorded_stack *stack, const struct profile *profile,
		   const uint32_t *frames, size_t n);

#endif
