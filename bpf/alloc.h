/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_ALLOC_H
#define BRAID_ALLOC_H

#include <linux/types.h>

/* Allocations, sampled by their bytes: the interface between the kernel half and user space, and
 * the arithmetic, which has no side effects.
 *
 * Each allocated byte is chosen with probability 1 / period, independently of the others. The
 * distance between two chosen bytes is exponentially distributed (a Poisson process, as in
 * tcmalloc, jemalloc and Go). A thread counts its own bytes down to the next chosen one. An
 * allocation of s bytes is sampled if one of its bytes is chosen. This has the probability 1 -
 * exp(-s / period), and the sample stands for s / (1 - exp(-s / period)) bytes. The expected sum of
 * these is the sum of the allocated bytes, for all sizes. */

/* --- the attach cookie of a probe at an allocating function: the meaning of its arguments --- */

/* An argument of the function, from 0 to 3. */
#define ALLOC_ARG_NONE			 7U
#define ALLOC_SIZE(cookie)		 ((cookie)&7)	       /* the size ... */
#define ALLOC_TIMES(cookie)		 (((cookie) >> 3) & 7) /* ... times this, if any */
#define ALLOC_NESTS(cookie)		 (((cookie) >> 6) & 1) /* may call another one internally */
#define ALLOC_COOKIE(size, times, nests) ((size) | (times) << 3 | (nests) << 6)

/* For outstanding allocations. WRITES: the function stores the address where its first argument
 * points. FREES: the function frees the argument FREED if it succeeds. A function that only frees
 * has no other fields. */
#define ALLOC_WRITES(cookie)	  (((cookie) >> 7) & 1)
#define ALLOC_FREES(cookie)	  (((cookie) >> 8) & 1)
#define ALLOC_FREED(cookie)	  (((cookie) >> 9) & 7)
#define ALLOC_WRITES_COOKIE	  (1U << 7)
#define ALLOC_FREES_COOKIE(which) (1U << 8 | (which) << 9)

/* The function ends by jumping to a function that returns its own first argument, as memset does.
 * That argument is the allocation. */
#define ALLOC_PASSES(cookie) (((cookie) >> 12) & 1)
#define ALLOC_PASSES_COOKIE  (1U << 12)

/* The index of the function's entry in alloc_codes; 0: there is no entry. */
#define ALLOC_CODES_MAX		  16384
#define ALLOC_FUNCTION(cookie)	  ((__u32)(cookie) >> 16)
#define ALLOC_FUNCTION_COOKIE(at) ((__u64)(at) << 16)

enum alloc_jumps {
	ALLOC_JUMPS_NEVER,
	ALLOC_JUMPS,	      /* to another allocating function, which then returns for it */
	ALLOC_JUMPS_FOR_NULL, /* only if there is nothing to free */
	ALLOC_JUMPS_IF_SMALL, /* only if its first argument is an alignment of malloc */
};

#define ALLOC_SMALL_ALIGNMENT 16

/* The code of an allocating function; places are distances from its first byte. */
struct alloc_function {
	__u64 bytes;		     /* size of the function */
	__u64 text_from, text_bytes; /* the executable segment; text_from wraps if negative */
	__u64 jumps;		     /* enum alloc_jumps */
};

/* From this size on, an allocation may call mmap. glibc does so from 128 KiB on, unless it is
 * configured otherwise. */
#define ALLOC_MMAPS_BYTES (64 * 1024)

/* An allocator needs less stack between its entry and the innermost function that it calls. */
#define ALLOC_STACK_BYTES 2048

/* The number of words in which the C library's mmap and sbrk store their saved registers and return
 * addresses. */
#define ALLOC_MAPPING_WORDS 8

/* A larger request is an error of the program: no process has so large an address space. */
#define ALLOC_BYTES_MAX (1ULL << 47)

#define ALLOC_PERIOD_MAX (1ULL << 40)

/* --- the arithmetic, in integers: BPF has no other numbers --- */

#define ALLOC_LOG2_BITS 24

/* Returns -log2(x / 2^32) for @x > 0, in units of 2^-24. It computes one digit after the other, by
 * squaring. It has no branches, because the verifier would follow each of them. */
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

/* Returns the number of bytes to the next chosen one: exponentially distributed with the mean
 * @period, if @random is uniform. ln 2 = 744261118 / 2^30. */
static inline __u64 alloc__draw(__u32 random, __u64 period)
{
	__u64 log2 = alloc__minus_log2(random ?: 1);
	__u64 ln = log2 * 744261118ULL >> 24; /* 30 binary digits */

	/* A period (up to 2^40) is multiplied by a logarithm (up to 23) in two parts. */
	return (((period >> 20) * ln >> 10) + ((period & 0xfffff) * ln >> 30)) ?: 1;
}

/* Returns exp(-x) for 1 <= x < 32, with 32 binary digits; @x has 20. It computes exp(-x / 32) by
 * its series, then squares the result five times. */
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

/* Returns a * b / 2^32, with @b below 2^32. */
static inline __u64 alloc__times(__u64 a, __u64 b)
{
	return ((a >> 16) * b >> 16) + ((a & 0xffff) * b >> 32);
}

/* Returns the number of bytes that a sampled allocation of @bytes stands for. */
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
