/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TRAP_H
#define BRAID_TRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* The cost of one hit of a probe on this machine by itself: trap, the probed instruction, an empty
 * BPF program, and return. It is measured on code of this process that no other code runs. The
 * kernel handles probed instructions in several ways (arch/x86/kernel/uprobes.c): */
enum trap_kind {
	TRAP_NOP,    /* one byte: skipped. Most USDT sites */
	TRAP_NOP5,   /* five bytes: skipped; since Linux 6.18 a call instead of a trap */
	TRAP_PUSH,   /* emulated */
	TRAP_STEP,   /* any other: single-stepped out of line */
	TRAP_RETURN, /* a function's return, in addition to the probe at its entry */
	TRAPS_N
};

struct trap_costs {
	double ns[TRAPS_N]; /* 0: not measured */
};

const char *trap__text(enum trap_kind kind); /* for users */

/* Returns the kind of a probe at @code, of which @size bytes are available. */
enum trap_kind trap__kind(const uint8_t *code, size_t size, bool retprobe);

/* Measures the kinds in @selected (bit n: kind n), about 10 ms each. Returns 0, -EPERM without the
 * privilege, or an error of libbpf. */
int trap__measure(uint32_t selected, struct trap_costs *ret, struct err *err);

#endif
