/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_BREAKPOINT_H
#define BRAID_BREAKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "core/base/err.h"

/* Hardware breakpoints: exactly one sample at each execution of one instruction, without a change
 * of the target. The CPU has four at a time. A breakpoint of some threads is not taken from other
 * threads, as the kernel switches breakpoints with the threads. */

/* all zero: no breakpoints */
struct breakpoints {
	struct bpf_link **links; /* one per thread; they own the events */
	size_t n, cap;
};

/* Runs @program whenever a thread of the process is about to execute the instruction at @address.
 * This covers its present threads, and all threads and processes that they start later. The process
 * must not start threads during the call. */
int breakpoints__attach(struct breakpoints *breakpoints, const struct bpf_program *program,
			uint32_t pid, uint64_t address, struct err *err);

void breakpoints__detach(struct breakpoints *breakpoints); /* idempotent */

/* Returns true if breakpoints fire on this machine; tests that in this thread. On some virtual
 * machines they can be set but do not fire. */
bool breakpoints__fire(void);

#endif
