/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROBE_COSTS_H
#define BRAID_PROBE_COSTS_H

#include "bench/figures.h"
#include "core/base/err.h"
#include "core/kernel/trap.h"

/* The cost of probes on this machine, measured on braid's own code. All in nanoseconds of CPU time.
 */
struct probe_costs {
	struct figure trap[TRAPS_N]; /* one hit with an empty program: the kernel's floor */
	/* An entry and a return with empty programs. usdt_pair: a USDT pair, at one-byte nops.
	 * uprobe_pair: a function that begins with a push. */
	struct figure usdt_pair, uprobe_pair;
	/* The USDT pair with the programs of the shadow stack, for three arguments in registers
	 * (bpf/python_probes.bpf.c). @calls: they also count and time the call. */
	struct figure shadow, calls;
	struct figure shadow_ratio, calls_ratio; /* over the empty programs of the same round */
};

/* Measures the costs. @rounds must be at least 6 for intervals. Returns 0, -EPERM or another
 * negative errno. */
int probe_costs__measure(size_t rounds, struct probe_costs *ret, struct err *err);

/* Returns the cost of one hit at this kind of instruction while calls are counted: the trap, and
 * half of the programs' cost for a pair. */
double probe_costs__hit_ns(const struct probe_costs *costs, enum trap_kind kind);

#endif
