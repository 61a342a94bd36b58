/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_WAYS_H
#define BRAID_WAYS_H

#include "bench/bench.h"
#include "bench/interrupt.h"
#include "bench/workload.h"

/* The ways in which one interpreter is measured, in turn, round by round: one process, alone and
 * with a profiler attached. */
enum way { WAY_NOTHING, WAY_RECORD_99, WAY_RECORD_999, WAY_PERF_999, WAY_CALLS, WAYS_N };

const char *way__text(enum way way); /* for people */

#define ROUNDS_MAX 25
#define NOTES_MAX  8

struct series {
	bool off;		      /* unavailable here */
	uint64_t n[WORKLOAD_TASKS_N]; /* count of each task for one measurement; 0: not determined
					 yet */
	double ns[WORKLOAD_TASKS_N][ROUNDS_MAX]; /* time of one unit of each task, by round */
	/* braid's own, as sums of all rounds; memory: the maximum */
	double own_cpu_s, run_s;
	uint64_t samples, lost, memory_bytes;
	uint64_t counted, called; /* WAY_CALLS: calls counted by braid, and by the workload */
};

struct ways {
	const struct bench_opts *opts;
	const struct interpreter *interpreter;
	unsigned runtime;	     /* number in opts->runtimes */
	struct workload *plain;	     /* started as users start it */
	struct workload *probed;     /* prepared for probes, perhaps the same; NULL: none */
	const struct workload *last; /* the last measured workload */
	struct series series[WAYS_N];
	size_t n_rounds;
	char notes[NOTES_MAX][500];
	size_t n_notes;
};

/* Starts the interpreter's workload, and determines the available ways. Returns 0 or a negative
 * errno. */
int ways__open(const struct bench_opts *opts, unsigned runtime,
	       const struct interpreter *interpreter, struct ways **ret, struct err *err);
void ways__close(struct ways *ways); /* NULL is fine */

/* Measures each way once more. On failure, also -EINTR, the results of earlier rounds remain. */
int ways__round(struct ways *ways, const struct interrupt *interrupt, struct err *err);

#endif
