/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUNTIME_WAYS_H
#define BRAID_RUNTIME_WAYS_H

#include "bench/bench.h"
#include "bench/interrupt.h"
#include "bench/observer.h"
#include "bench/workload.h"
#include "probes/probe_process.h"

/* The ways that one interpreter is measured in, in turn, round by round: by itself, and with all
 * that braid can do to it. */
enum way {
	WAY_NOTHING,
	WAY_WALK_99,
	WAY_WALK_999,
	WAY_READY, /* prepared for probes, without one; only where that makes a difference */
	WAY_EMPTY, /* all probes with a program that does nothing */
	WAY_CALLS,
	WAY_PROBES_99,
	WAY_PROBES_999,
	WAYS_N
};

const char *way__text(enum way way); /* for people */

#define ROUNDS_MAX 15
#define NOTES_MAX  8

struct series {
	bool off; /* cannot be had here, or makes no difference */
	bool by_probes;
	uint64_t
		n[WORKLOAD_TASKS_N]; /* so often is done what takes long enough; 0: not yet known */
	double ns[WORKLOAD_TASKS_N][ROUNDS_MAX]; /* of one */
	/* braid's, sums of all rounds; memory: the most */
	double run_cpu_s, run_s;
	uint64_t samples, lost, memory_bytes;
	uint64_t counted, called; /* WAY_CALLS: calls by braid, and by the workload */
};

struct ways {
	const struct bench_opts *opts;
	const struct interpreter *interpreter;
	unsigned runtime;	     /* number in opts->runtimes */
	struct workload *plain;	     /* as users start it */
	struct workload *probed;     /* prepared for probes, maybe the same; NULL: it has none */
	bool separate;		     /* they are not the same */
	const struct workload *last; /* that was measured */
	struct probe_process process;
	struct braid_bpf *skel;
	struct series series[WAYS_N];
	size_t n_rounds;
	char notes[NOTES_MAX][500];
	size_t n_notes;
};

/* Starts the interpreter's workload, and finds out which ways there are. `only_probed`: nothing is
 * wanted of one that cannot be recorded by probes (`probed` is NULL then). */
int ways__open(const struct bench_opts *opts, unsigned runtime,
	       const struct interpreter *interpreter, bool only_probed, struct ways **ret,
	       struct err *err);
void ways__close(struct ways *ways); /* NULL is fine */

/* One more of each. On failure, also -EINTR, what the rounds before have found stays. */
int ways__round(struct ways *ways, const struct interrupt *interrupt, struct err *err);

#endif
