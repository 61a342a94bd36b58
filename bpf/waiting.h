/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_WAITING_REC_H
#define BRAID_WAITING_REC_H

#include "bpf/shared.h"

/* What both halves keep of waiting (bpf/off_cpu.bpf.c), and of what events may cost. */

/* What a CPU may spend on samples (bpf/budget.bpf.h). */
struct budget_rec {
	__u64 filled_ns;  /* CLOCK_MONOTONIC, as changed_ns: when it was filled the last time */
	__s64 left_ns;	  /* below 0: overdrawn */
	__u64 period_ns;  /* of the clocks of threads that wait; a power of two */
	__u64 changed_ns; /* when that was changed the last time, */
	__u64 spent_ns;	  /* and what samples have cost since */
	__u64 longest_ns; /* period_ns has been */
	__u64 intervals, skipped;
	__u64 emitted_ns; /* when a sample was last ready, of the thread of this id */
	__u64 emitted_by;
	__u64 carried[2 * EVENTS_MAX]; /* by event: what the next sample stands for in addition */
};

#define WAITING_PERIOD_LEAST_NS 1024 /* of clocks; a power of two */

/* A thread that is, or was, off the CPU; key: its id. */
#define WAITING_MAX 65536
struct waiting_rec {
	__u64 off_ns;	/* CLOCK_MONOTONIC: since when; 0: it runs */
	__u64 clock_ns; /* its clock (bpf/budget.bpf.h) */
	__u64 link;	/* the sample of who has woken it; 0: none was taken */
	__u32 peer;	/* who has woken it; 0: not known, or an interrupt */
	__u32 state;	/* enum thread_state */
	__u64 on_ns;	/* when it came back; 0: not seen yet */
	__u64 exec_ns;	/* how long it had run when it left, as the scheduler counts */
	__s64 ahead_ns; /* by so much that counts more as running than the hooks do */
	__u64 over;	/* not 0: its last wait is over, and not sampled yet */
};

/* Waits of which that is true, at a time (bpf/off_cpu_before.bpf.c). */
#define WAITS_OVER_MAX 4096

#define STILL_RETURNS_MAX 64 /* MAX_URETPROBE_DEPTH, include/linux/uprobes.h */

/* A thread as it stands, which does not run. */
struct still_thread {
	__u32 tgid, tid;
	__u32 n_kernel;
	__u32 cs; /* 0: it has no user registers */
	__u64 fs_base;
	__u64 start_stack;	 /* stack pointer of the program's first instruction */
	__u64 regs[UNWIND_REGS]; /* as in rec_stack */
	__u64 runs;		 /* not 0: it has woken up meanwhile, and the rest means nothing */
	__s64 syscall;		 /* orig_ax: a system call's number, or negative */
	char comm[THREAD_NAME_BYTES];
	__u64 kernel[KERNEL_FRAMES_MAX]; /* innermost first */
	/* Return probes, innermost first: where on the stack the trampoline's address is, and what
	 * was there before. */
	__u64 trampoline; /* 0: it has none */
	__u64 n_returns;
	__u64 returns[STILL_RETURNS_MAX][2];
};

#endif
