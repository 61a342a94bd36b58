/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_WAITING_REC_H
#define BRAID_WAITING_REC_H

#include "bpf/shared.h"

/* State of events and of waiting threads that both halves access (bpf/budget.bpf.h,
 * bpf/off_cpu.bpf.c). */

/* Occurrences that have no sample of their own. */
struct rest_rec {
	__u64 weight; /* how many */
	__u64 total;  /* sum of their values, in the event's unit */
};

/* Time that samples may take: it fills up as time passes, and samples take from it. */
struct budget_share {
	__u64 filled_ns; /* CLOCK_MONOTONIC; when it was filled the last time */
	__s64 left_ns;	 /* below 0: overdrawn */
};

/* One event on one CPU. */
struct event_budget {
	struct budget_share share;
	__u64 period_ns;	  /* of the clocks of threads that wait; a power of two */
	__u64 changed_ns;	  /* CLOCK_MONOTONIC; when period_ns changed the last time */
	__u64 spent_ns;		  /* cost of the event's samples since then */
	__u64 whole_ns;		  /* budget_rec.spent_ns at that time */
	__u64 longest_ns;	  /* the longest period_ns so far */
	__u64 occurrences;	  /* all */
	__u64 skipped;		  /* those without a sample of their own */
	__u64 part;		  /* of an occurrence, in 2^-16: left over by rounded weights */
	struct rest_rec rests[2]; /* by the lowest bit of rest_epoch */
};

/* The time that a CPU may spend on samples. */
struct budget_rec {
	struct budget_share pool; /* what any event may take */
	__u64 spent_ns;		  /* cost of all samples that are limited */
	__u64 emitted_ns; /* CLOCK_MONOTONIC; when the last sample was ready, of this thread: */
	__u64 emitted_by; /* its id */
	struct event_budget events[2 * EVENTS_MAX]; /* by number of the event */
};
_Static_assert(sizeof(struct budget_rec) % 8 == 0, "an entry of a map that is mapped");

/* The clock of a thread that decides which of its intervals are sampled. */
struct interval_clock {
	__u64 ns;
	__u32 skipped; /* intervals since it rang */
	__u32 epoch;   /* rest_epoch when it was started */
};

#define WAITING_PERIOD_LEAST_NS 1024 /* of clocks; a power of two */

/* A thread that is, or was, off the CPU; key: its id. */
#define WAITING_MAX 65536
struct waiting_rec {
	__u64 off_ns; /* CLOCK_MONOTONIC: since when; 0: it runs */
	struct interval_clock clock;
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
