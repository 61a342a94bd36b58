/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ALLOC_WINDOWS_H
#define BRAID_ALLOC_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/alloc.h"

/* Watches calls permanently, or, if that costs too much, in short windows at random times, each of
 * which stands for the time around it. Pure: the caller passes times, costs and sums
 * (docs/decisions/0021-windows-by-the-programs-time.md).
 *
 * Samples of allocations need no pairs, unlike shadow stacks (docs/decisions/0018). A window is a
 * fair sample if its time does not depend on the program's behaviour in it. So the time of the next
 * window is drawn before this one opens. A window represents the life of threads since the last
 * window, and each thread has the same part of its life in the window. */

/* Width of a window, in time of a thread's life, without the time of probes. It is short, so that
 * the program changes little: a program that alternates between sleep and work does not yet catch
 * up, and few threads lose their CPU. */
#define WINDOW_WIDTH_NS	    100000ULL
#define WINDOW_WIDTH_MIN_NS 5000ULL
/* maximum time of probes in a thread of one window; beyond that, windows become narrower */
#define WINDOW_LOST_MAX_NS  1000000ULL
/* maximum time to wait until preempted threads have their share */
#define WINDOW_OPEN_MAX_NS  100000000ULL

#define WINDOW_GAP_MIN 10000000ULL    /* 10 ms, on average */
#define WINDOW_GAP_MAX 10000000000ULL /* 10 s */

/* target number of samples in a window, as samples take time, too */
#define WINDOW_SAMPLES 24

/* Number of ticks from which the measured cost of a hit is used; before, the assumed cost has an
 * error of WINDOW_ASSUMED_ERROR. */
#define WINDOW_TICKS_MIN     30
#define WINDOW_ASSUMED_ERROR 0.3
#define WINDOW_COST_ERROR    0.03 /* minimum: caches are colder after a hit */

struct windows {
	double rate;	    /* CPU time that may be spent, ns per ns; 0: no limit */
	double left_ns;	    /* rest of the budget, at most that of 1 s */
	uint64_t filled_ns; /* CLOCK_MONOTONIC, as all times here */
	bool open_always;
	uint64_t seed;
	uint64_t next_ns; /* time of the next window */
	double gap_ns;	  /* average gap, which follows from the cost of windows */
	double spent_ns;  /* average cost of recent windows */
	uint64_t width_ns;

	/* --- sums --- */
	uint64_t n, began_ns;
	uint64_t n_used;	/* windows that had a thread */
	uint64_t always_ns;	/* time in which all calls were watched */
	struct alloc_sums sums; /* sums of all windows */
	double assumed_ns;	/* cost of a hit, until it is measured */
	/* Sums over windows, each times the window's weight: the samples' bytes, calls, bytes of
	 * all calls, bytes if a hit cost an eighth less; and the life of threads. */
	double value, calls, bytes, less_bytes, life_ns;
	double off_before; /* deviation of the previous window */
	bool had_before;
	double variance;
	double squared_life;			   /* sum of squares of the lives of windows */
	double bytes_per_window, calls_per_window; /* averages of recent windows ... */
	uint64_t n_averaged;			   /* ... and the number of windows in them */
};

/* @assumed_ns: initial cost of a hit. */
void windows__init(struct windows *windows, double percent, unsigned n_cpus, double assumed_ns,
		   uint64_t seed, uint64_t now_ns);

/* Adds @ns that were spent since the last call, while all calls are watched. Returns true if that
 * exceeds the limit: windows then begin. */
bool windows__spend(struct windows *windows, double ns, uint64_t now_ns);

/* Returns true if a window is due. */
bool windows__is_due(const struct windows *windows, uint64_t now_ns);

/* Opens a window. */
void windows__open(struct windows *windows, uint64_t now_ns);

/* Closes a window that cost @spent_ns and saw @seen, where `lost_ns` is the maximum of all threads.
 * It has the weight @times and represents @life_ns. Returns true if the cost is now low enough to
 * watch all calls again. */
bool windows__close(struct windows *windows, double spent_ns, const struct alloc_sums *seen,
		    double times, double life_ns, uint64_t now_ns);

/* Returns the time that a hit takes from its thread, by the clock's ticks within windows. */
double windows__cost_ns(const struct windows *windows);

/* Returns the period of samples in the next window; @period is the user's period for all bytes. */
uint64_t windows__period(const struct windows *windows, uint64_t period);

/* Returns the relative error of `value` with a probability of 95 %. It combines the differences
 * between neighbouring windows, of which there may be few, with the uncertainty of the cost of a
 * hit. Negative: not available yet. */
double windows__margin(const struct windows *windows);

#endif
