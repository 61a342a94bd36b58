/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LIVE_WINDOW_H
#define BRAID_LIVE_WINDOW_H

#include "core/profile/recorded.h"

/* Keeps the sums of what was recorded to those of the last seconds: what each slot of time has
 * added to a stack's sums is noted, and taken off again when the slot leaves the window. So at any
 * time each sum is exactly that of the samples in the window, which a sum that decays never is.
 *
 * A sample belongs to the slot in which it was taken, however late it comes. One that stands for
 * an interval of time belongs to all slots that the interval touches, each having its part: who
 * has waited for a minute has waited for ten of the last ten seconds. */

#define LIVE_WINDOW_SLOTS_MAX 64

struct live_window_slot {
	uint64_t start_ns;
	struct live_window_part {
		uint32_t stack; /* a row of the stacks */
		uint64_t samples, occurrences, value;
	} * parts;
	size_t n, cap;
	struct intern index; /* of parts, + 1, by stack */
};

/* Zeroed: there is no window. */
struct live_window {
	struct live_window_slot *slots; /* a ring */
	unsigned n_max, n;
	unsigned newest;
	size_t n_parts; /* of all slots */
	struct live_window_slot under_way;
};

/* The newest slot, and `slots` before it. -ENOMEM. */
int live_window__init(struct live_window *window, unsigned slots, uint64_t now_ns);
void live_window__done(struct live_window *window); /* idempotent */

/* Begins a slot; the oldest leaves if there are enough. */
void live_window__turn(struct live_window *window, struct recorded *recorded, uint64_t now_ns);

/* Adds to the sums of a stack's row what of the sample is in the window. `interval`: its value is
 * so many ns that end at its time. -ENOMEM. */
int live_window__add(struct live_window *window, struct recorded *recorded, uint32_t stack,
		     const struct sink_sample *sample, bool interval);

/* The same for an interval that goes on after the sample's time: it counts until the next call of
 * live_window__drop_under_way, which takes all of these off. -ENOMEM. */
int live_window__add_under_way(struct live_window *window, struct recorded *recorded,
			       uint32_t stack, const struct sink_sample *sample);
void live_window__drop_under_way(struct live_window *window, struct recorded *recorded);

/* Stacks that are not marked go, and the others move up. -ENOMEM. */
int live_window__keep(struct live_window *window, const bool *stacks, size_t n);

size_t live_window__bytes(const struct live_window *window);

#endif
