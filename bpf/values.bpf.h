/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_VALUES_BPF_H
#define BRAID_VALUES_BPF_H

/* Reads the values of a sample (bpf/values.h) at its trigger. bpf/emit.bpf.c sends them before the
 * sample. They are no part of the stack's content, so that each stack still crosses the ring
 * once. */

#include "bpf/scratch.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: VALUE_LISTS_MAX if an event has values */
	__type(key, __u32);
	__type(value, struct value_list);
} value_lists __weak SEC(".maps");

#define REGISTER_WORDS (sizeof(struct pt_regs) / 8)

static __always_inline __u64 value__register(const struct scratch *scratch, __u32 reg)
{
	const __u64 *regs = (const __u64 *)&scratch->unwind.kernel_regs;

	barrier_var(reg); /* the verifier must see the check below */
	return reg < REGISTER_WORDS ? regs[reg] : 0;
}

static __always_inline int value__read(__u64 *to, __u32 bytes, __u64 at, __u32 is_user)
{
	*to = 0;
	if (bytes > sizeof(*to))
		return -1;
	return is_user ? bpf_probe_read_user(to, bytes, (void *)at)
		       : bpf_probe_read_kernel(to, bytes, (void *)at);
}

/* Stores the value from which the steps of @spec begin. Returns 0, or nonzero if it is
 * unreadable. */
static __always_inline int value__begin(const void *ctx, const struct scratch *scratch,
					const struct value_spec *spec, __u64 *ret)
{
	const struct probe_arg *arg = &spec->arg;
	__u64 at;

	*ret = arg->value;
	switch (arg->kind) {
	case PROBE_ARG_REGISTER:
		*ret = value__register(scratch, arg->reg);
		return 0;
	case PROBE_ARG_MEMORY:
		at = value__register(scratch, arg->reg) + arg->value +
		     (value__register(scratch, arg->index_reg) << (arg->scale_log2 & 3));
		return value__read(ret, arg->size, at, 1);
	case VALUE_WORD:
		return value__read(ret, 8, (__u64)ctx + 8 * (arg->value & 15), 0);
	default:
		return arg->kind != PROBE_ARG_CONSTANT;
	}
}

/* Extends a value of @bytes bytes to 64 bits, by its sign or by zeros. */
static __always_inline __u64 value__extend(__u64 value, __u32 bytes, __u32 is_signed)
{
	__u32 unused = (64 - 8 * bytes) & 63;

	value <<= unused;
	return is_signed ? (__u64)((__s64)value >> unused) : value >> unused;
}

static __always_inline int value__text(struct rec_values *values, __u64 *ret, __u64 at,
				       __u32 is_user)
{
	__u32 n = values->n_texts;
	long bytes;
	char *to;

	barrier_var(n);
	if (n >= VALUES_MAX)
		return -1;
	to = values->texts[n];
	bytes = is_user ? bpf_probe_read_user_str(to, VALUE_TEXT_BYTES, (void *)at)
			: bpf_probe_read_kernel_str(to, VALUE_TEXT_BYTES, (void *)at);
	if (bytes < 0)
		return -1;
	*ret = bytes;
	values->n_texts = n + 1;
	return 0;
}

/* Stores a value. Returns 0, or nonzero if it is unreadable. */
static __noinline int value__take(const void *ctx, struct scratch *scratch,
				  const struct value_spec *spec, __u64 *ret)
{
	__u32 n_steps, bytes, i, is_last, is_user;
	__u64 value, at;

	if (!scratch || !spec || value__begin(ctx, scratch, spec, &value))
		return -1;
	n_steps = spec->n_steps;
	bytes = spec->arg.size ?: sizeof(value);
	value = value__extend(value, bytes, spec->arg.is_signed);
	for (i = 0; i < VALUE_STEPS_MAX && i < n_steps; i++) {
		at = value + spec->offsets[i];
		is_last = i + 1 == n_steps;
		is_user = !spec->is_kernel || (is_last && spec->is_user);
		if (is_last && !spec->bytes)
			return value__text(&scratch->values, ret, at, is_user);
		bytes = is_last ? spec->bytes : sizeof(value);
		if (value__read(&value, bytes, at, is_user))
			return -1;
	}
	*ret = value__extend(value, spec->bytes, spec->is_signed);
	return 0;
}

/* Reads the values of the list into @scratch. The trigger's registers, if it has any, are in
 * scratch->unwind.kernel_regs. */
static __noinline int values__take(const void *ctx, struct scratch *scratch, __u32 list)
{
	const struct value_list *specs = bpf_map_lookup_elem(&value_lists, &list);
	struct rec_values *values;
	__u32 i;

	if (!scratch)
		return 0;
	values = &scratch->values;
	values->n_texts = 0;
	values->is_missing = 0;
	if (specs) {
		values->is_text = specs->is_text;
		values->is_signed = specs->is_signed;
		values->is_pointer = specs->is_pointer;
	}
	for (i = 0; specs && i < VALUES_MAX; i++) {
		__u64 value = 0;

		if (i >= specs->n)
			break;
		if (value__take(ctx, scratch, &specs->list[i], &value)) {
			values->is_missing |= 1U << i;
			count(COUNT_VALUE_READ);
		}
		values->numbers[i] = value;
	}
	values->n = i;
	scratch->has_values = 1;
	return 0;
}

/* As values__take(), for a trigger with registers and a cookie. */
static __always_inline void values__of_cookie(struct pt_regs *ctx, struct scratch *scratch,
					      __u64 cookie)
{
	if (cookie < 1ULL << COOKIE_VALUES_SHIFT)
		return;
	__builtin_memcpy(&scratch->unwind.kernel_regs, ctx, sizeof(*ctx));
	scratch->values.place = COOKIE_PLACE(cookie);
	values__take(ctx, scratch, COOKIE_VALUES(cookie));
}

#endif
