/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_SWITCH_BPF_H
#define BRAID_SWITCH_BPF_H

/* Unwinding to a caller on another stack, if the thread itself switched stacks: the rules
 * UNWIND_SWITCH and UNWIND_RESUME (bpf/unwind_rule.h). */

#include "bpf/scratch.bpf.h"

static __always_inline int switch__read(__u64 *to, __u64 from)
{
	return bpf_probe_read_user(to, sizeof(*to), (void *)from) ? -1 : 0;
}

/* Reads the pointer to the other stack, as the rule says, into u->value, and the address of its
 * word into *ret_at. Returns -1 if it is unreadable, and 1 if there is no caller. */
static __always_inline int switch__follow(struct unwind_state *u, __u64 *ret_at)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct unwind_rule *rule = &u->rule;
	__u64 at = arch__thread_pointer(task) + rule->cfa_off, value;
	__u32 hops = (__u32)rule->cfa_add;

	if (switch__read(&value, at))
		return -1;
	for (int i = 0; i < UNWIND_HOPS_MAX && i < rule->reg; i++) {
		if (!value)
			return 1;
		at = value + 8 * (hops & 0xff);
		hops >>= 8;
		if (switch__read(&value, at))
			return -1;
	}
	u->value = value;
	*ret_at = at;
	return 0;
}

static __always_inline int switch__resume(struct unwind_state *u)
{
	__u64 at = u->sp + u->rule.cfa_off, bounds, upper;

	if (switch__read(&bounds, at) || switch__read(&u->value, at - 8))
		return -1;
	if (!bounds)
		return 0;
	if (switch__read(&upper, bounds + 8))
		return -1;
	u->value = upper - u->value;
	u->resumed = u->sp;
	return 0;
}

/* Sets u->cfa to the caller's CFA, and with UNWIND_PC_FOLLOWS u->value to the return address.
 * Without a caller the rule becomes UNWIND_END. Returns a counter on failure. */
__noinline int switch__find(struct unwind_state *u)
{
	struct unwind_rule *rule;
	int found = 0;
	__u64 at = 0;

	if (!u)
		return COUNT_TABLE;
	rule = &u->rule;
	if (rule->kind == UNWIND_RESUME)
		found = switch__resume(u);
	else if (rule->flags & UNWIND_CHAINED && u->chained)
		found = switch__read(&u->value, u->chained);
	else
		found = switch__follow(u, &at);
	if (found < 0)
		return COUNT_STACK_READ;
	if (found) {
		rule->kind = UNWIND_END;
		u->cfa = u->sp + 8;
		return 0;
	}
	if (rule->flags & UNWIND_CHAINED) {
		/* The stack was left at that address, further inside. */
		if (u->value <= u->resumed)
			return COUNT_NOT_GROWING;
		u->chained = u->value;
	}
	u->cfa = u->value + 8 * ((__u32)rule->cfa_add >> 24);
	if (rule->flags & UNWIND_PC_FOLLOWS && switch__read(&u->value, at + 8))
		return COUNT_STACK_READ;
	return 0;
}

#endif
