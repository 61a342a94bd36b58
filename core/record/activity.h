/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ACTIVITY_H
#define BRAID_ACTIVITY_H

#include <stddef.h>
#include <stdint.h>

struct tracker;

/* What targets do whether or not there are samples of it, from /proc: for those who wonder why
 * there are so few. Of processes that live. */

#define ACTIVITY_CALLS_MAX 3
#define ACTIVITY_SAMPLES   20 /* with so many it is not looked at */

struct activity {
	double cpu_s; /* that they have used within the recording; negative: unknown */
	unsigned processes, threads;
	struct {
		const char *name; /* of the system call that threads are in now */
		unsigned threads;
	} calls[ACTIVITY_CALLS_MAX]; /* the most frequent ones, these first */
	size_t n_calls;
};

/* Notes what each process has used so far. Not called: that is unknown later. */
void activity__begin(struct tracker *tracker);

/* Reads what the processes have used since activity__begin(), in the recording that lasted from
 * @start_ns to @end_ns (CLOCK_MONOTONIC). That is unknown if one of the processes ran before, and
 * was found later; and if the call comes so late that they have run on for long. What cannot be
 * read is left out. */
void activity__read(const struct tracker *tracker, uint64_t start_ns, uint64_t end_ns,
		    struct activity *ret);

#endif
