/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_WAITING_REC_H
#define BRAID_WAITING_REC_H

#include "bpf/shared.h"

/* State of events and of waiting threads that the kernel half and user space access
 * (bpf/budget.bpf.h, bpf/off_cpu.bpf.c). */

/* Occurrences without their own sample. */
struct rest_rec {
	__u64 weight; /* number of occurrences */
	__u64 total;  /* sum of their values, in the event's unit */
};

/* Time available for samples. It fills up as time passes, and samples reduce it. */
struct budget_share {
	__u64 filled_ns; /* CLOCK_MONOTONIC; time of the last filling */
	__s64 left_ns;	 /* below 0: overdrawn */
};

/* One event on one CPU. */
struct event_budget {
	struct budget_share share;
	__u64 period_ns;	  /* period of the waiting threads' clocks; a power of two */
	__u64 changed_ns;	  /* CLOCK_MONOTONIC; time of the last change of period_ns */
	__u64 spent_ns;		  /* cost of the event's samples since then */
	__u64 whole_ns;		  /* budget_rec.spent_ns at that time */
	__u64 longest_ns;	  /* the longest period_ns so far */
	__u64 occurrences;	  /* number of all occurrences */
	__u64 skipped;		  /* number of those without their own sample */
	__u64 fraction;		  /* rest of rounded weights, in 2^-16 occurrences */
	struct rest_rec rests[2]; /* by the lowest bit of rest_epoch */
};

/* The time that a CPU may spend on samples. */
struct budget_rec {
	struct budget_share pool;		    /* time for any event */
	__u64 spent_ns;				    /* cost of all limited samples */
	struct event_budget events[2 * EVENTS_MAX]; /* by number of the event */
};
_Static_assert(sizeof(struct budget_rec) % 8 == 0, "an entry of a map that is mapped");

/* The clock of a thread that selects the intervals to sample. */
struct interval_clock {
	__u64 ns;
	__u32 skipped; /* intervals since it rang */
	__u32 epoch;   /* rest_epoch at its start */
};

#define WAITING_PERIOD_LEAST_NS 1024 /* minimum period of clocks; a power of two */

/* A thread that is, or was, off the CPU; key: its id. */
#define WAITING_MAX 65536
struct waiting_rec {
	__u64 off_ns; /* CLOCK_MONOTONIC: start of the wait; 0: it runs */
	struct interval_clock clock;
	__u64 link;	/* link of the waker's sample; 0: none */
	__u32 peer;	/* id of the waker; 0: unknown, or an interrupt */
	__u32 state;	/* enum thread_state */
	__u64 on_ns;	/* time of its return; 0: not seen yet */
	__u64 exec_ns;	/* its running time at departure, by the scheduler */
	__s64 ahead_ns; /* excess of that running time over the time between the hooks */
	__u64 over;	/* not 0: its last wait is complete, and not sampled yet */
};

/* The maximum number of such waits at one time (bpf/off_cpu_before.bpf.c). */
#define WAITS_OVER_MAX 4096

#define WAITING_RETURNS_MAX 64 /* MAX_URETPROBE_DEPTH, include/linux/uprobes.h */

/* The state of a thread that does not run. */
struct waiting_thread {
	__u32 tgid, tid;
	__u32 n_kernel;
	__u32 cs; /* 0: the thread has no user registers */
	__u64 fs_base;
	__u64 start_stack;	 /* stack pointer of the program's first instruction */
	__u64 regs[UNWIND_REGS]; /* as in rec_stack */
	__u64 runs;		 /* not 0: it has woken up meanwhile, and the rest is invalid */
	__s64 syscall;		 /* orig_ax: a system call's number, or negative */
	char comm[THREAD_NAME_BYTES];
	__u64 kernel[KERNEL_FRAMES_MAX]; /* innermost first */
	/* Return probes, innermost first: the place of the trampoline's address on the stack, and
	 * the original value there. */
	__u64 trampoline; /* 0: none */
	__u64 n_returns;
	__u64 returns[WAITING_RETURNS_MAX][2];
};

#endif
