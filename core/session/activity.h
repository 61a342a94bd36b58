/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ACTIVITY_H
#define BRAID_ACTIVITY_H

#include <stddef.h>

struct tracker;

/* What targets do whether or not there are samples of it, from /proc: for those who wonder why
 * there are so few. Of processes that live. */

#define ACTIVITY_CALLS_MAX 3
#define ACTIVITY_SAMPLES   20 /* with so many it is not looked at */

struct activity {
	double cpu_s; /* that they have used since the beginning; negative: not known */
	unsigned processes, threads;
	struct {
		const char *name; /* of the system call that threads are in now */
		unsigned threads;
	} calls[ACTIVITY_CALLS_MAX]; /* the most frequent ones, these first */
	size_t n_calls;
};

/* In seconds, all of their lives. */
double activity__cpu_s(const struct tracker *tracker);

/* `before_s`: what activity__cpu_s was at the beginning; negative: processes that have run for long
 * were found since. What cannot be read is left out. */
void activity__read(const struct tracker *tracker, double before_s, struct activity *ret);

#endif
