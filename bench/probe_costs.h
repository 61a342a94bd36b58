/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROBE_COSTS_H
#define BRAID_PROBE_COSTS_H

#include "bench/figures.h"
#include "core/base/err.h"
#include "core/kernel/trap.h"

/* What probes cost on this machine, measured on code of braid's own. All in nanoseconds of CPU
 * time.
 */
struct probe_costs {
	struct figure trap[TRAPS_N]; /* one hit with an empty program: the kernel's floor */
	/* An entry and a return with empty programs: of a USDT pair, at one-byte nops, and of a
	 * function that begins with a push. */
	struct figure usdt_pair, uprobe_pair;
	/* The USDT pair with the programs that keep a shadow stack, for three arguments in
	 * registers (bpf/python_probes.bpf.c); and that count and time the call as well. */
	struct figure shadow, calls;
	struct figure shadow_ratio, calls_ratio; /* over the empty programs of the same round */
};

/* `rounds`: at least 6 for intervals. -EPERM, ... */
int probe_costs__measure(size_t rounds, struct probe_costs *ret, struct err *err);

/* Of one hit at this kind of instruction while calls are counted: the trap, and half of what the
 * programs add to a pair. */
double probe_costs__hit_ns(const struct probe_costs *costs, enum trap_kind kind);

#endif
