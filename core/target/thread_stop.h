/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_THREAD_STOP_H
#define BRAID_THREAD_STOP_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/unwind_rule.h"

/* A thread that is stopped briefly, by PTRACE_SEIZE and PTRACE_INTERRUPT. No signal is sent, and
 * the kernel resumes the thread if this process dies. Only one at a time. */

struct stopped_thread {
	uint64_t regs[UNWIND_REGS]; /* in the order of DWARF (bpf/unwind_rule.h) */
	uint64_t fs_base;
	int64_t call;	   /* orig_rax; negative: in no system call */
	bool compat;	   /* it executes 32-bit code */
	uint64_t since_ns; /* CLOCK_MONOTONIC; time at which the stop was seen */
};

/* Stops thread @tid. Returns 0: stopped, and thread__release() must follow; -ESRCH: it has ended;
 * -EPERM, -EBUSY: another tracer has it; -ETIMEDOUT: it is in an uninterruptible wait. In the last
 * case the thread stops when that wait ends, so threads__let_go() must be called from time to time.
 */
int thread__hold(uint32_t tid, struct stopped_thread *ret);
void thread__release(uint32_t tid);
void threads__let_go(void);

#endif
