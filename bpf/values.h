/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_VALUES_H
#define BRAID_VALUES_H

#include <linux/types.h>

#include "bpf/probe_rec.h"

/* Values that are recorded with a sample: arguments and results of functions, arguments of USDT
 * probes and tracepoints, and fields behind them. Shared by the kernel half and user space. */

#define VALUES_MAX	 6  /* values of one sample */
#define VALUE_TEXT_BYTES 72 /* with the final NUL */
#define VALUE_TEXT_SHOWN 64 /* longer texts are cut */
#define VALUE_STEPS_MAX	 3

/* Lists of values. Event n has the lists n, n + VALUE_LISTS_STEP, ...: one for each form that the
 * sites of its probe have. Triggers without a cookie have the first one. */
#define VALUE_LISTS_STEP 32
#define VALUE_FORMS_MAX	 64
#define VALUE_LISTS_MAX	 (VALUE_LISTS_STEP * VALUE_FORMS_MAX)

/* Parts of the attach cookie: the number of the list (0: none), and the number of the function
 * among those of the event's pattern (0: the event has no pattern). */
#define COOKIE_VALUES_SHIFT   16
#define COOKIE_VALUES(cookie) ((__u32)((cookie) >> COOKIE_VALUES_SHIFT) & 0xffff)
#define COOKIE_PLACE_SHIFT    32
#define COOKIE_PLACE(cookie)  ((__u32)((cookie) >> COOKIE_PLACE_SHIFT))

/* A further probe_arg.kind: word number `value` of a tracepoint's arguments. */
#define VALUE_WORD 4

enum value_kind { VALUE_NUMBER, VALUE_POINTER, VALUE_TEXT };

/* A value, or one that is reached from it: a pointer at each of `offsets`, and at the last of them
 * the value. */
struct value_spec {
	struct probe_arg arg;
	__u16 offsets[VALUE_STEPS_MAX];
	__u8 n_steps;
	__u8 bytes; /* size of the value: 1, 2, 4 or 8; 0: a text */
	__u8 is_signed;
	__u8 is_kernel; /* the steps read the kernel's memory ... */
	__u8 is_user;	/* ... except the last step, in the target's memory */
	__u8 type;	/* enum value_kind; for user space */
	__u8 pad[4];
};
_Static_assert(sizeof(struct value_spec) == 32, "value_spec");

struct value_list {
	__u32 n;
	__u8 is_text, is_signed, is_pointer; /* bit i: value i is one */
	__u8 pad;
	struct value_spec list[VALUES_MAX];
};

/* The values of a sample, sent before the sample (REC_VALUES). */
struct rec_values {
	__u32 type;
	__u32 tgid;
	__u32 number;					 /* rec_sample.context of its only sample */
	__u32 place;					 /* COOKIE_PLACE */
	__u8 is_missing, is_text, is_signed, is_pointer; /* bit i: value i is unreadable, ... */
	__u16 n;
	__u16 n_texts;
	__u64 numbers[VALUES_MAX];		  /* a text: its bytes, including the NUL */
	char texts[VALUES_MAX][VALUE_TEXT_BYTES]; /* readable texts, in their order */
};
#define REC_VALUES_HEADER 72
_Static_assert(sizeof(struct rec_values) == REC_VALUES_HEADER + VALUES_MAX * VALUE_TEXT_BYTES,
	       "rec_values");

#endif
