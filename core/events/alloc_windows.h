/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ALLOC_WINDOWS_H
#define BRAID_ALLOC_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/alloc.h"

/* Watching all of the time, or, where that costs too much, in short windows at random times, each
 * of which stands for the time around it. Pure: it is told the time, what was spent and what was
 * seen (docs/decisions/0021-windows-by-the-programs-time.md).
 *
 * Samples of allocations need no pairs, unlike shadow stacks (docs/decisions/0018): a window is a
 * fair sample if when it comes does not depend on what the program does in it. So the time to the
 * next one is drawn before it opens. It tells of the life that threads have had since the last one,
 * and each of them has the same of it in the window. */

/* What a window is wide: of a thread's life, without what probes take of it. Short, so that the
 * program notices little: one that sleeps and works by turns has not begun to catch up, and few
 * threads lose their CPU. */
#define WINDOW_WIDTH_NS	    100000ULL
#define WINDOW_WIDTH_MIN_NS 5000ULL
/* Probes may take so much of a thread in one; more has windows become narrower. */
#define WINDOW_LOST_MAX_NS  1000000ULL
/* Threads that had to give way get their share if it takes no longer. */
#define WINDOW_HELD_MAX_NS  100000000ULL

#define WINDOW_GAP_MIN 10000000ULL    /* 10 ms, on average */
#define WINDOW_GAP_MAX 10000000000ULL /* 10 s */

/* Samples that a window should have: as they take time, too. */
#define WINDOW_SAMPLES 24

/* What a hit takes is believed from so many ticks on; until then within so much of itself. */
#define WINDOW_TICKS_MIN     30
#define WINDOW_ASSUMED_ERROR 0.3
#define WINDOW_COST_ERROR    0.03 /* at best: caches are colder after a hit */

struct windows {
	double rate;	    /* ns of CPU time that may be spent in a ns; 0: no limit */
	double left_ns;	    /* of the budget, at most a second's worth */
	uint64_t filled_ns; /* CLOCK_MONOTONIC, as all times here */
	bool open_always;
	uint64_t seed;
	uint64_t next_ns; /* when the next window is due */
	double gap_ns;	  /* on average, as the cost of windows has it */
	double spent_ns;  /* by a window, on average of the last ones */
	uint64_t width_ns;

	/* --- what was seen --- */
	uint64_t n, began_ns;
	uint64_t n_met;		/* of them that had a thread */
	uint64_t always_ns;	/* in which all was watched */
	struct alloc_sums sums; /* in all windows */
	double assumed_ns;	/* of a hit, until it is known better */
	/* Each times what its window stood for: the samples' bytes, calls, bytes of all calls, the
	 * same if a hit took a little less; and the life of threads. */
	double value, calls, bytes, less_bytes, life_ns;
	double off_before; /* of the window before */
	bool had_before;
	double variance;
	double squared_life;			   /* the sum of squares of what windows tell of */
	double bytes_per_window, calls_per_window; /* on average of the last ones, ... */
	uint64_t n_averaged;			   /* which are so many */
};

/* `assumed_ns`: what a hit takes. */
void windows__init(struct windows *windows, double percent, unsigned n_cpus, double assumed_ns,
		   uint64_t seed, uint64_t now_ns);

/* While all is watched: so much was spent since the last call. True: it is too much, so that
 * windows begin. */
bool windows__spend(struct windows *windows, double ns, uint64_t now_ns);

/* Is one due? */
bool windows__is_due(const struct windows *windows, uint64_t now_ns);

/* One opens. */
void windows__open(struct windows *windows, uint64_t now_ns);

/* It is over, has cost so much, and this was seen in it (of `lost_ns` the most of a thread); it
 * counts `times`, and tells of so much life. True: that is little by now, so that all can be
 * watched again. */
bool windows__close(struct windows *windows, double spent_ns, const struct alloc_sums *seen,
		    double times, double life_ns, uint64_t now_ns);

/* What a hit takes of its thread, from the ticks of the clock within windows. */
double windows__cost_ns(const struct windows *windows);

/* The period of samples in the next window, if `period` is wanted of all bytes together. */
uint64_t windows__period(const struct windows *windows, uint64_t period);

/* How much `value` may be wrong by, as a share of it, in 95 of 100 cases: from
 * the differences of windows that follow each other, of which there may be few, and from what is
 * not known of the cost of a hit. Below 0: not known yet. */
double windows__margin(const struct windows *windows);

#endif
