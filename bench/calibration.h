/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CALIBRATION_H
#define BRAID_CALIBRATION_H

#include "bench/figures.h"
#include "core/err.h"
#include "core/trap.h"

/* What probes cost on this machine, measured without any target. All in nanoseconds. */
struct calibration {
	struct figure trap[TRAPS_N]; /* one hit with an empty program: the kernel's floor */
	struct figure count;	     /* what the program that counts hits adds (bpf/probes.bpf.c) */
	/* An entry and a return with empty programs: of a USDT pair, at one-byte nops, and of a
	 * uprobe pair, at a function that begins with a push. */
	struct figure pair[2];
	/* The USDT pair with the programs that keep a shadow stack, for three arguments in
	 * registers (bpf/python_probes.bpf.c); and that count and time the call as well. */
	struct figure shadow, calls;
	struct figure shadow_ratio, calls_ratio; /* over the empty programs of the same round */
	double trap_user[TRAPS_N]; /* the share of it that ticks find in user mode (bench/modes.h)
				    */
	struct figure interrupt;   /* one sample with an empty program: the timer's floor */
};
enum { CALIBRATION_USDT, CALIBRATION_UPROBE };

/* `cpus`: how many do the same at once. `rounds`: at least 6 for intervals. -EPERM, ... */
int calibration__measure(unsigned cpus, unsigned rounds, struct calibration *ret, struct err *err);

#endif
