/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ACTIVITY_H
#define BRAID_ACTIVITY_H

#include <stddef.h>
#include <stdint.h>

struct tracker;

/* CPU time and system calls of the targets that still run, read from /proc. They explain a
 * recording with few samples. */

#define ACTIVITY_CALLS_MAX 3
#define ACTIVITY_SAMPLES   20 /* with at least this number of samples, nothing is read */

struct activity {
	double cpu_s; /* CPU time of the processes within the recording; negative: unknown */
	unsigned processes, threads;
	struct {
		const char *name; /* name of a system call in which threads are now */
		unsigned threads;
	} calls[ACTIVITY_CALLS_MAX]; /* the most frequent ones, these first */
	size_t n_calls;
};

/* Stores the CPU time that each process has used so far. Without this call, activity__read() has no
 * CPU times. */
void activity__begin(struct tracker *tracker);

/* Reads the CPU time that the processes have used since activity__begin(), for a recording from
 * @start_ns to @end_ns (CLOCK_MONOTONIC). The time is unknown if a process that ran before was
 * found later, or if the processes have run for long since @end_ns. Unreadable processes are left
 * out. */
void activity__read(const struct tracker *tracker, uint64_t start_ns, uint64_t end_ns,
		    struct activity *ret);

#endif
