/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_GOVERNOR_H
#define BRAID_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "core/base/err.h"
#include "runtimes/runtime.h"

/* Evaluates --max-overhead (docs/reference/overhead.md): for probes,
 *   overhead = (hits x cost of a trap + run time of the BPF programs) / (wall time x CPUs),
 * with hits and run time from the kernel's BPF statistics. */

/* --- what may be spent: a token bucket --- */

struct budget {
	double rate;	  /* ns of CPU time per ns */
	double left_ns;	  /* below 0: overdrawn; at most one second's worth */
	uint64_t seen_ns; /* CLOCK_MONOTONIC, as the next one: filled up to here */
	uint64_t full_ns; /* when it was full the last time */
	double spent_ns;  /* since full_ns */
	unsigned n_cpus;
};

/* Full. `percent` of `n_cpus` CPUs. */
void budget__init(struct budget *budget, double percent, unsigned n_cpus, uint64_t now_ns);
void budget__spend(struct budget *budget, double ns, uint64_t now_ns);
bool budget__is_overdrawn(const struct budget *budget);
double budget__percent(const struct budget *budget); /* spent since it was full */

/* --- how fast to sample: at the n-th part of the rate that was asked for, a power of two --- */

struct pace {
	double max_percent;
	uint32_t slowdown, slowdown_max;
	uint32_t slowest; /* slowdown has been */
	unsigned quiet;	  /* ticks in a row with room for twice the rate */
};

/* `frequency_hz`: that was asked for; it does not get below 1 Hz. */
void pace__init(struct pace *pace, double max_percent, uint32_t frequency_hz);

/* Once a second, with what this process itself cost in it, in percent of the machine. True if
 * `slowdown` has changed. */
bool pace__tick(struct pace *pace, double own_percent);

/* --- probes --- */

/* What a program has run so far, while the kernel's statistics were switched on. 0s on
 * failure. */
void program_stats__read(int program_fd, uint64_t *ret_runs, uint64_t *ret_ns);

struct governor;

struct governor_opts {
	struct bpf_object *object;	       /* of the probes; loaded when these are watched */
	const struct runtime *const *runtimes; /* all known, NULL-terminated */
	uint32_t enabled;		       /* bit n: runtimes[n]'s probes may be attached */
	double max_percent;
};

/* -ENOMEM. */
int governor__new(const struct governor_opts *opts, struct governor **ret, struct err *err);
void governor__free(struct governor *governor); /* NULL is fine */

/* To be called in each round while probes are attached whose hits cost `traps` (bit n: enum
 * trap_kind n): has the kernel keep its statistics from now on, and has a thread measure those
 * kinds that are not measured yet. -EPERM without CAP_SYS_ADMIN, -ENOMEM, or what trap__measure
 * returned. */
int governor__watch(struct governor *governor, uint32_t traps, struct err *err);

/* No probes are attached: the kernel need not keep its statistics. Idempotent. */
void governor__rest(struct governor *governor);

/* Adds what probes have cost since the last call. True if that is more than the limit allows: all
 * probes are to be detached. */
bool governor__is_exceeded(struct governor *governor, uint64_t now_ns);

/* What probes have cost since the budget was full, in percent of the machine. */
double governor__percent(const struct governor *governor);

#endif
