/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ALLOC_WINDOWS_H
#define BRAID_ALLOC_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Watching all of the time, or, where that costs too much, in short windows at random times, each
 * of which stands for the time around it. Pure: it is told the time and what was spent.
 *
 * Samples of allocations need no pairs, unlike shadow stacks (docs/decisions/0018): a window is a
 * fair sample if when it comes does not depend on what the program does in it. So its length is
 * fixed, the time to the next one is drawn before it opens, and so is what it stands for: half of
 * the time between it and each of its neighbours, and itself. The sum over all of them is the time
 * that has passed. */

#define WINDOW_NS      50000000ULL    /* 50 ms */
#define WINDOW_GAP_MAX 10000000000ULL /* 10 s, on average */

struct windows {
	double rate;	    /* ns of CPU time that may be spent in a ns; 0: no limit */
	double left_ns;	    /* of the budget, at most a second's worth */
	uint64_t filled_ns; /* CLOCK_MONOTONIC, as all times here */
	bool open_always;
	uint64_t seed;
	uint64_t next_ns;	/* when the next window is due */
	uint64_t told_ns;	/* what was before this is represented by a window */
	uint64_t gap_ns;	/* on average, as the last window's cost has it */
	uint64_t n, watched_ns; /* windows, and the time that was watched, with that before them */
	uint64_t began_ns;
};

void windows__init(struct windows *windows, double percent, unsigned n_cpus, uint64_t seed,
		   uint64_t now_ns);

/* While all is watched: so much was spent since the last call. True: it is too much, so that
 * windows begin. */
bool windows__spend(struct windows *windows, double ns, uint64_t now_ns);

/* Is one due? */
bool windows__is_due(const struct windows *windows, uint64_t now_ns);

/* One opens: how many times its length it stands for. */
double windows__open(struct windows *windows, uint64_t now_ns);

/* It is over, and has cost so much. True: that is little by now, so that all can be watched again.
 */
bool windows__close(struct windows *windows, double spent_ns, uint64_t now_ns);

/* The share of the time that was watched, from 0 to 1. */
double windows__share(const struct windows *windows, uint64_t now_ns);

#endif
