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
 *
 * Hits and run time come from the kernel's BPF statistics. */

/* --- the budget: a token bucket --- */

struct budget {
	double rate;	  /* ns of CPU time per ns */
	double left_ns;	  /* below 0: overdrawn; at most one second's worth */
	uint64_t seen_ns; /* CLOCK_MONOTONIC: the bucket was filled up to then */
	uint64_t full_ns; /* CLOCK_MONOTONIC: when it was full the last time */
	double spent_ns;  /* since full_ns */
	unsigned n_cpus;
};

/* Initializes a full bucket, of @percent of @n_cpus CPUs. */
void budget__init(struct budget *budget, double percent, unsigned n_cpus, uint64_t now_ns);
void budget__spend(struct budget *budget, double ns, uint64_t now_ns);
bool budget__is_overdrawn(const struct budget *budget);
double budget__percent(const struct budget *budget); /* spent since it was full */

/* --- the sampling rate: the requested rate divided by a power of two --- */

struct pace {
	double max_percent;
	uint32_t slowdown, slowdown_max;
	uint32_t slowest; /* largest slowdown so far */
	unsigned quiet;	  /* ticks in a row with room for twice the rate */
};

/* @frequency_hz: the requested rate. The rate does not fall below 1 Hz. */
void pace__init(struct pace *pace, double max_percent, uint32_t frequency_hz);

/* Adjusts the rate; called once a second with braid's own CPU time in that second, in percent of
 * the machine. Returns true if `slowdown` has changed. */
bool pace__tick(struct pace *pace, double own_percent);

/* --- probes --- */

/* Reads the number and the duration of all runs of a program while the kernel's statistics were on.
 * Sets both to 0 on failure. */
void program_stats__read(int program_fd, uint64_t *ret_runs, uint64_t *ret_ns);

struct governor;

struct governor_opts {
	struct bpf_object *object; /* the probes' object; loaded before governor__watch() */
	const struct runtime *const *runtimes; /* all runtimes, NULL-terminated */
	uint32_t enabled;		       /* bit n: probes of runtimes[n] may be attached */
	double max_percent;
};

/* Returns 0 or -ENOMEM. */
int governor__new(const struct governor_opts *opts, struct governor **ret, struct err *err);
void governor__free(struct governor *governor); /* NULL is fine */

/* Switches the kernel's statistics on, and starts a thread that measures the cost of new kinds of
 * traps. Must be called in each round while probes are attached. Bit n of @traps: a hit of these
 * probes costs a trap of kind n (enum trap_kind). Returns 0, -EPERM without CAP_SYS_ADMIN, -ENOMEM,
 * or an error of trap__measure. */
int governor__watch(struct governor *governor, uint32_t traps, struct err *err);

/* Switches the kernel's statistics off when no probes are attached. Idempotent. */
void governor__rest(struct governor *governor);

/* Adds the cost of probes since the last call. Returns true if the limit is exceeded; then the
 * caller detaches all probes. */
bool governor__is_exceeded(struct governor *governor, uint64_t now_ns);

/* Returns the cost of probes since the budget was full, in percent of the machine. */
double governor__percent(const struct governor *governor);

#endif
