/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_FILTER_BPF_H
#define BRAID_FILTER_BPF_H

/* Selects occurrences of a tracepoint: tests of its arguments, and of memory behind pointers. Types
 * and offsets come from user space (core/events/filter.h). */

#include "bpf/filter.h"
#include "bpf/scratch.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FILTERS_N);
	__type(key, __u32);
	__type(value, struct event_filter);
} filters __weak SEC(".maps");

/* Stores the value for a test in *ret, sign-extended if it is signed. Returns 0 if memory is
 * unreadable, for instance behind a null pointer. */
static __always_inline int filter__value(const struct filter_test *test, __u64 at, __u64 *ret)
{
	__u64 value = at;
	__u32 i, bytes, shift;

	for (i = 0; i < FILTER_STEPS_MAX && i < test->n_steps; i++) {
		at = value + test->offsets[i];
		bytes = i + 1 < test->n_steps ? sizeof(value) : test->bytes;
		value = 0;
		if (!bytes) { /* a text: its address */
			*ret = at;
			return 1;
		}
		if (bytes > sizeof(value) || bpf_probe_read_kernel(&value, bytes, (void *)at))
			return 0;
	}
	shift = 64 - 8 * (test->bytes ?: sizeof(value));
	value <<= shift & 63;
	*ret = test->is_signed ? (__u64)((__s64)value >> (shift & 63)) : value >> (shift & 63);
	return 1;
}

static __always_inline int filter__text_holds(const struct filter_test *test, __u64 at)
{
	__u64 text[FILTER_TEXT_WORDS] = {}, differs = 0;
	__u32 i;

	if (bpf_probe_read_kernel_str(text, sizeof(text), (void *)at) < 0)
		return 0;
	for (i = 0; i < FILTER_TEXT_WORDS; i++)
		differs |= text[i] ^ test->text[i];
	return test->op == FILTER_UNEQUAL ? differs != 0 : !differs;
}

static __always_inline int filter__compare(const struct filter_test *test, __u64 value)
{
	__u64 with = test->value;
	/* Flipping the sign bit orders signed numbers like unsigned ones. */
	__u64 flip = test->is_signed ? 1ULL << 63 : 0;

	switch (test->op) {
	case FILTER_EQUAL:
		return value == with;
	case FILTER_UNEQUAL:
		return value != with;
	case FILTER_LESS:
		return (value ^ flip) < (with ^ flip);
	case FILTER_AT_MOST:
		return (value ^ flip) <= (with ^ flip);
	case FILTER_GREATER:
		return (value ^ flip) > (with ^ flip);
	case FILTER_AT_LEAST:
		return (value ^ flip) >= (with ^ flip);
	default:
		return (value & with) != 0;
	}
}

/* Returns 1 if a test holds for the tracepoint's @arguments, each a word. They are read as memory,
 * because the verifier accepts no variable index. User space ensures that the argument exists. A
 * test of unreadable memory does not hold. */
static __noinline int filter__holds(const void *arguments, const struct filter_test *test)
{
	__u64 value = 0;

	if (!test)
		return 0;
	if (test->argument == FILTER_THREAD)
		value = bpf_get_current_task(); /* a number, because Linux 6.1 shifts no pointers */
	else if (bpf_probe_read_kernel(&value, sizeof(value),
				       arguments + 8 * (__u64)test->argument))
		return 0;
	if (!filter__value(test, value, &value))
		return 0;
	return test->bytes ? filter__compare(test, value) : filter__text_holds(test, value);
}

static __always_inline int filter__passes(const void *arguments, __u32 key)
{
	const struct event_filter *filter = bpf_map_lookup_elem(&filters, &key);
	int holds = 1;
	__u32 i;

	if (!filter)
		return 0;
	for (i = 0; i < FILTER_TESTS_MAX && i < filter->n; i++) {
		const struct filter_test *test = &filter->tests[i];

		if (test->begins && holds)
			return 1;
		if (test->begins)
			holds = 1;
		if (holds)
			holds = filter__holds(arguments, test);
		if (!holds && i < filter->required)
			return 0;
	}
	return holds;
}

#endif
