/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_IDLE_MATCH_H
#define BRAID_IDLE_MATCH_H

#include "core/profile/recorded.h"
#include "runtimes/idle.h"

/* Is this wait idle? `stack`: one that the thread waits with; `frames`: those of the profile that
 * it is shown as, root first. `rules`: arrays, each with an empty rule at its end; the last one is
 * NULL. */
bool idle__matches(const struct idle_rule *const *rules, const struct recorded *recorded,
		   const struct recorded_stack *stack, const struct profile *profile,
		   const uint32_t *frames, size_t n);

#endif
