/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_THREAD_STOP_H
#define BRAID_THREAD_STOP_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/unwind_rule.h"

/* A thread that is held for a moment, by PTRACE_SEIZE and PTRACE_INTERRUPT: no signal is sent, and
 * whatever happens to this process, the kernel lets the thread run on. One at a time. */

struct thread_held {
	uint64_t regs[UNWIND_REGS]; /* in the order of DWARF (bpf/unwind_rule.h) */
	uint64_t fs_base;
	int64_t call;	   /* orig_rax; below 0: in no system call */
	bool compat;	   /* it executes 32-bit code */
	uint64_t since_ns; /* when it was seen to be stopped: CLOCK_MONOTONIC */
};

/* 0: it is stopped, thread__release must follow. -ESRCH: it is gone. -EPERM, -EBUSY: another tracer
 * has it. -ETIMEDOUT: it waits in the kernel for something that cannot be interrupted; it would
 * stop when that is over, so that threads__let_go has to be called now and then. */
int thread__hold(uint32_t tid, struct thread_held *ret);
void thread__release(uint32_t tid);
void threads__let_go(void);

#endif
