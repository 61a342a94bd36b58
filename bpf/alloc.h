/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_ALLOC_H
#define BRAID_ALLOC_H

#include <linux/types.h>

/* Allocations, sampled by their bytes: what both halves agree on, and the arithmetic, which is
 * pure.
 *
 * Each byte that is allocated is chosen with probability 1 / period, each by itself: the way from
 * one chosen byte to the next is exponentially distributed (a Poisson process, as in tcmalloc,
 * jemalloc and Go). A thread counts its own bytes down to the next one. An allocation of s bytes is
 * sampled if one of its bytes is chosen, which has the probability 1 - exp(-s / period), and stands
 * for s / (1 - exp(-s / period)) bytes: the expected sum of what samples stand for is the sum of
 * what was allocated, whatever the sizes. */

/* --- the attach cookie of a probe at a function that allocates: which argument is what --- */

/* An argument of the function, from 0 to 3. */
#define ALLOC_ARG_NONE			 7U
#define ALLOC_SIZE(cookie)		 ((cookie)&7)	       /* the size ... */
#define ALLOC_TIMES(cookie)		 (((cookie) >> 3) & 7) /* ... times this, or ALLOC_ARG_NONE */
#define ALLOC_NESTS(cookie)		 (((cookie) >> 6) & 1) /* may call another one to do its work */
#define ALLOC_COOKIE(size, times, nests) ((size) | (times) << 3 | (nests) << 6)

/* Where what is outstanding is asked for: it leaves the address where its first argument says; one
 * of its arguments is freed by it, if it succeeds. That one is all that is known of a function
 * which only frees. */
#define ALLOC_WRITES(cookie)	  (((cookie) >> 7) & 1)
#define ALLOC_FREES(cookie)	  (((cookie) >> 8) & 1)
#define ALLOC_FREED(cookie)	  (((cookie) >> 9) & 7)
#define ALLOC_WRITES_COOKIE	  (1U << 7)
#define ALLOC_FREES_COOKIE(which) (1U << 8 | (which) << 9)

/* Where it ends by jumping to a function that returns its own first argument, as memset does: that
 * is what is allocated. */
#define ALLOC_PASSES(cookie) (((cookie) >> 12) & 1)
#define ALLOC_PASSES_COOKIE  (1U << 12)

/* The index of the function's entry in alloc_codes; 0: there is no entry. */
#define ALLOC_CODES_MAX	      16384
#define ALLOC_CODE(cookie)    ((__u32)(cookie) >> 16)
#define ALLOC_CODE_COOKIE(at) ((__u64)(at) << 16)

enum alloc_jumps {
	ALLOC_JUMPS_NEVER,
	ALLOC_JUMPS,	      /* to another function that allocates, which then returns for it */
	ALLOC_JUMPS_FOR_NULL, /* only if there is nothing to free */
	ALLOC_JUMPS_IF_SMALL, /* only if its first argument is an alignment that malloc has */
};

#define ALLOC_SMALL_ALIGNMENT 16

/* The code of a function that allocates; places are distances from its first byte. */
struct alloc_code {
	__u64 bytes;		     /* of the function */
	__u64 text_from, text_bytes; /* the executable segment; text_from wraps if negative */
	__u64 jumps;		     /* enum alloc_jumps */
};

/* By which link it is attached: that of an earlier window may still be there. */
#define ALLOC_LINK_SHIFT   32
#define ALLOC_LINK(cookie) ((cookie) >> ALLOC_LINK_SHIFT)

/* From so many bytes on any of them may call mmap: glibc does so from 128 KiB on, if it was not
 * told otherwise. */
#define ALLOC_MMAPS_BYTES (64 * 1024)

/* An allocator needs less stack between its entry and the innermost function that it calls. */
#define ALLOC_STACK_BYTES 2048

/* The C library's mmap and sbrk store their saved registers and return addresses in as many. */
#define ALLOC_MAPPING_WORDS 8

/* More is asked for by mistake: no process has so much address space. */
#define ALLOC_BYTES_MAX (1ULL << 47)

#define ALLOC_PERIOD_MAX (1ULL << 40)

/* --- windows: calls are watched for a moment now and then (core/events/alloc_windows.h) --- */

/* What alloc_on_thread does with each thread of the targets. */
enum alloc_visit {
	ALLOC_OPEN,  /* its window begins, unless it waits for a CPU */
	ALLOC_LOOK,  /* has it had its window? */
	ALLOC_CLOSE, /* its window ends, as it is */
};

/* What user space says of the window that is open. */
struct alloc_window {
	__u64 number;	/* from 1 */
	__u64 link;	/* the hits of this one count */
	__u64 windows;	/* 0: there are none, calls are watched all the time */
	__u64 since_ns; /* CLOCK_MONOTONIC: when there began to be any */
	__u64 visit;	/* enum alloc_visit */
	__u64 width_ns; /* of a thread's life */
	__u64 cost_ns;	/* what a hit takes of that */
	__u64 tick_ns;	/* and a tick of the clock */
	__u64 period;	/* of its samples at most, in bytes */
	/* The kernel half's: */
	__u64 opened;	 /* number of the window that has been opened */
	__u64 opened_ns; /* when */
	__u64 threads;	 /* that got one */
	__u64 life_ns;	 /* of all threads, of which no window has told yet */
	__u64 told_ns;	 /* that of which this one tells */
	__u64 scale;	 /* how many times its value each sample counts, in 256ths */
};

/* What the kernel half says of all windows so far, of one CPU. */
struct alloc_sums {
	__u64 unfinished;   /* threads that were looked at before they had theirs */
	__u64 calls, bytes; /* within windows */
	__u64 less_bytes;   /* would have been, if a hit took ALLOC_LESS of what it does */
	__u64 value;	    /* of the samples, without the scale */
	/* Between a thread's hits, where it was not off the CPU: what a hit really takes. */
	__u64 gaps, gap_ns;
	__u64 sample_ns;	     /* of these: what samples took */
	__u64 trap_ticks, own_ticks; /* by the clock: within the probe, and in the program itself */
	__u64 window, lost_ns;	     /* in that window: what probes took of a thread at most */
};

/* 7/8 of it. */
#define ALLOC_LESS(ns) ((ns) - (ns) / 8)

/* --- the arithmetic, in integers as BPF has nothing else --- */

#define ALLOC_LOG2_BITS 24

/* -log2(x / 2^32) for x > 0, in units of 2^-24: digit after digit, by squaring. Without branches,
 * of which the verifier would follow each. */
static inline __u64 alloc__minus_log2(__u32 x)
{
	__u64 m = x, zeros = 0, result, digit;
	int i;

	/* Into [2^31, 2^32), which stands for [1, 2). */
	for (i = 16; i; i /= 2) {
		digit = (((m >> (32 - i)) - 1) >> 63) * i;
		m <<= digit;
		zeros += digit;
	}
	result = (31 - zeros) << ALLOC_LOG2_BITS; /* the integer part of log2(x) */
	for (i = ALLOC_LOG2_BITS - 1; i >= 0; i--) {
		m = m * m >> 31;
		digit = m >> 32;
		m >>= digit;
		result |= digit << i;
	}
	return (32ULL << ALLOC_LOG2_BITS) - result;
}

/* The bytes to the next one that is chosen: exponentially distributed with this mean, if `random`
 * is uniform. ln 2 = 744261118 / 2^30. */
static inline __u64 alloc__draw(__u32 random, __u64 period)
{
	__u64 log2 = alloc__minus_log2(random ?: 1);
	__u64 ln = log2 * 744261118ULL >> 24; /* 30 binary digits */

	/* Periods up to 2^40 times up to 23: in two halves. */
	return (((period >> 20) * ln >> 10) + ((period & 0xfffff) * ln >> 30)) ?: 1;
}

/* exp(-x) for 1 <= x < 32, with 32 binary digits; x with 20. exp(-x / 32) by its series, then five
 * times its square. */
static inline __u64 alloc__exp_minus(__u64 x)
{
	__u64 y = x << 7; /* x / 32 with 32 digits, below 1 */
	__u64 one = 1ULL << 32, sum = one, term = one;
	int i;

	for (i = 1; i <= 9; i++) {
		term = (term * (y >> 1) >> 31) / i;
		sum = i & 1 ? sum - term : sum + term;
	}
	for (i = 0; i < 5; i++)
		sum = (sum >> 1) * (sum >> 1) >> 30;
	return sum;
}

/* a * b / 2^32, b being below 2^32. */
static inline __u64 alloc__times(__u64 a, __u64 b)
{
	return ((a >> 16) * b >> 16) + ((a & 0xffff) * b >> 32);
}

/* What a sampled allocation stands for. */
static inline __u64 alloc__weight(__u64 bytes, __u64 period)
{
	__u64 x, square, fourth, rest;

	if (period <= 1 || bytes >= 32 * period)
		return bytes;
	x = (bytes << 16) / period; /* 16 binary digits */
	if (x < 1 << 16) {
		/* s / (1 - exp(-x)) = period (1 + x/2 + x^2/12 - x^4/720 + x^6/30240 ...) */
		square = x * x; /* these have 32 digits */
		fourth = (square >> 16) * (square >> 16);
		rest = square / 12 - fourth / 720 + (fourth >> 16) * (square >> 16) / 30240;
		return period + bytes / 2 + alloc__times(period, rest);
	}
	rest = alloc__exp_minus(x << 4);
	return bytes + alloc__times(bytes, (rest << 31) / ((1ULL << 32) - rest) << 1);
}

#endif
