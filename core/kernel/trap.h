/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TRAP_H
#define BRAID_TRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* What one hit of a probe costs on this machine by itself: trap, the probed instruction in whatever
 * way the kernel runs it, an empty BPF program, and back. Measured on code of this very process
 * that nobody else runs. What the kernel does depends on the probed instruction
 * (arch/x86/kernel/uprobes.c): */
enum trap_kind {
	TRAP_NOP,    /* one byte: skipped. Most USDT sites */
	TRAP_NOP5,   /* five bytes: skipped, and since Linux 6.18 no trap but a call */
	TRAP_PUSH,   /* emulated */
	TRAP_STEP,   /* any other: single-stepped out of line */
	TRAP_RETURN, /* a function's return, over the probe at its entry that it needs */
	TRAPS_N
};

struct trap_costs {
	double ns[TRAPS_N]; /* 0: not asked for */
};

const char *trap__text(enum trap_kind kind); /* for people */

/* The kind of a probe at this code (`size` bytes of it are known). */
enum trap_kind trap__kind(const uint8_t *code, size_t size, bool retprobe);

/* Measures the kinds in `wanted` (bit n: kind n), some 10 ms each. -EPERM without the privilege,
 * else what libbpf returns. */
int trap__measure(uint32_t wanted, struct trap_costs *ret, struct err *err);

#endif
