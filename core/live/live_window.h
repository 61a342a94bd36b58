/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LIVE_WINDOW_H
#define BRAID_LIVE_WINDOW_H

#include "core/profile/recorded.h"

/* Limits the sums of recorded data to those of the last seconds. Each slot of time stores its
 * additions to the sums of each stack, which are subtracted when the slot leaves the window. So
 * each sum is at any time exactly that of the samples in the window, unlike a sum that decays.
 *
 * A sample belongs to the slot in which it was taken, however late it arrives. A sample that stands
 * for an interval of time belongs to all slots that the interval touches, to each with its part. A
 * thread that waits for a minute has waited for ten of the last ten seconds. */

#define LIVE_WINDOW_SLOTS_MAX 64

struct live_window_slot {
	uint64_t start_ns;
	struct live_window_part {
		uint32_t stack; /* a row of the stacks */
		uint64_t samples, occurrences, value;
	} * parts;
	size_t n, cap;
	struct intern index; /* numbers of parts, + 1, by stack */
};

/* All zero: no window. */
struct live_window {
	struct live_window_slot *slots; /* a ring */
	unsigned n_max, n;
	unsigned newest;
	size_t n_parts; /* number of parts in all slots */
	struct live_window_slot under_way;
};

/* Makes a window of the newest slot and @slots slots before it. Returns 0 or -ENOMEM. */
int live_window__init(struct live_window *window, unsigned slots, uint64_t now_ns);
void live_window__done(struct live_window *window); /* idempotent */

/* Begins a slot. The oldest slot leaves if the window is full. */
void live_window__advance(struct live_window *window, struct recorded *recorded, uint64_t now_ns);

/* Adds the part of the sample that is in the window to the sums of a stack's row. @interval is set
 * if the sample's value is a time in ns that ends at the sample's time. Returns 0 or -ENOMEM. */
int live_window__add(struct live_window *window, struct recorded *recorded, uint32_t stack,
		     const struct sink_sample *sample, bool interval);

/* As live_window__add(), for an interval that continues after the sample's time. It counts until
 * live_window__drop_under_way(), which subtracts all such intervals. Returns 0 or -ENOMEM. */
int live_window__add_under_way(struct live_window *window, struct recorded *recorded,
			       uint32_t stack, const struct sink_sample *sample);
void live_window__drop_under_way(struct live_window *window, struct recorded *recorded);

/* Removes the stacks that are not marked; the others move up. Returns 0 or -ENOMEM. */
int live_window__keep(struct live_window *window, const bool *stacks, size_t n);

size_t live_window__bytes(const struct live_window *window);

#endif
