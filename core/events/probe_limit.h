/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_EVENTS_PROBE_LIMIT_H
#define BRAID_EVENTS_PROBE_LIMIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/events/event.h"
#include "core/kernel/trap.h"
#include "probes/probe_set.h"

/* The limit of --max-overhead for probes at frequent calls. The cost of these probes is the number
 * of hits times the measured cost of a trap, plus the run time of their BPF programs. A bucket
 * holds the budget of one second, so that a burst does not exceed the limit. Probes that exceed it
 * are detached permanently: the samples up to that moment are of all calls
 * (docs/decisions/0218-allocations-within-the-limit.md). */

#define PROBE_LIMIT_PROGRAMS_MAX 3

struct probe_limit_program {
	const struct bpf_program *program;
	enum trap_kind trap; /* trap of its most frequent probe */
};

/* All zero: there is no limit. */
struct probe_limit {
	struct {
		const struct bpf_program *program;
		double trap_ns;
		uint64_t runs, run_ns; /* at the last check */
	} programs[PROBE_LIMIT_PROGRAMS_MAX];
	size_t n;
	bool enforced;
	int stats_fd; /* the kernel updates statistics while it is open; used if `enforced` */
	double percent;
	double rate, left_ns; /* budget in ns per ns; its rest */
	double spent_ns;
	uint64_t began_ns, filled_ns; /* CLOCK_MONOTONIC */
	struct probe_set *detached;   /* NULL: not detached */
	pthread_t thread;	      /* detaches the probes */
	bool detaching;
};

/* Starts to limit @n programs to @percent of the machine (0: no limit). Without the kernel's
 * statistics there is no limit, and event->note gives the reason. */
void probe_limit__begin(struct probe_limit *limit, struct event *event, double percent,
			const struct probe_limit_program *programs, size_t n);

/* Called in each round. Returns true if the probes exceed the limit. */
bool probe_limit__is_exceeded(struct probe_limit *limit, uint64_t now_ns);

/* Detaches *@set in a thread, as this takes the kernel up to 1 s. Takes ownership: *@set is NULL
 * afterwards. */
void probe_limit__detach(struct probe_limit *limit, struct probe_set **set);

/* Returns the part of the machine that the probes took so far, in percent. */
double probe_limit__cost(const struct probe_limit *limit);

/* Returns the time from the beginning to the last check, in seconds. */
double probe_limit__seconds(const struct probe_limit *limit);

void probe_limit__done(struct probe_limit *limit);

#endif
