/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_FILTER_TESTS_H
#define BRAID_FILTER_TESTS_H

#include "bpf/shared.h"

/* Tests of a tracepoint's arguments, shared by the kernel half and user space. */

/* Keys of the map: the event's number, plus FILTERS_BEGIN for the beginning of an interval. */
#define FILTERS_BEGIN	  (EVENTS_MAX + 1)
#define FILTERS_N	  (2 * FILTERS_BEGIN)
#define FILTER_TESTS_MAX  8
#define FILTER_STEPS_MAX  3
#define FILTER_TEXT_WORDS 4

#define FILTER_THREAD 0xff

enum filter_op {
	FILTER_EQUAL,
	FILTER_UNEQUAL,
	FILTER_LESS,
	FILTER_AT_MOST,
	FILTER_GREATER,
	FILTER_AT_LEAST,
	FILTER_ANY_BIT,
};

/* A test of an argument, or of a value that is reached from it. There is a pointer at each of
 * `offsets`, and the value at the last of them. */
struct filter_test {
	__u8 argument; /* index from 0; FILTER_THREAD: address of the current task_struct */
	__u8 n_steps;
	__u8 bytes; /* size of the value: 1, 2, 4 or 8; 0: a text */
	__u8 op;    /* enum filter_op */
	__u8 is_signed;
	__u8 begins; /* the test begins an alternative; earlier tests belong to the previous
			alternative */
	__u16 offsets[FILTER_STEPS_MAX];
	__u32 pad;
	union {
		__u64 value;
		__u64 text[FILTER_TEXT_WORDS]; /* padded with NULs */
	};
};
_Static_assert(sizeof(struct filter_test) == 48, "filter_test");

struct event_filter {
	__u32 n;	/* tests; 0: all pass */
	__u32 required; /* number of tests, the first ones, that must hold for all alternatives */
	struct filter_test tests[FILTER_TESTS_MAX];
};

#endif
