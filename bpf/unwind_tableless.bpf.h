/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_UNWIND_TABLELESS_BPF_H
#define BRAID_UNWIND_TABLELESS_BPF_H

#include "bpf/scratch.bpf.h"

/* Frames of code that no table covers. */

/* `mov $15,%rax; syscall`: the signal trampoline of a C library without unwind information. Where
 * it is not is remembered, as most code without tables is of a compiler that runs with the program,
 * and one does not take the other's place. */
__noinline int unwind__is_sigreturn(struct unwind_state *u)
{
	const struct scratch *scratch = scratch__get();
	__u64 code = 0, tag, *plain;

	if (!u || !scratch)
		return 0;
	tag = (u->pc + scratch->proc.space * 0xbf58476d1ce4e5b9ULL) * 0x9e3779b97f4a7c15ULL;
	plain = &u->plain[tag >> (64 - PLAIN_LOG2)];
	if (*plain == tag || bpf_probe_read_user(&code, sizeof(code), (void *)u->pc))
		return 0;
	if (code == 0x0f0000000fc0c748ULL)
		return 1;
	*plain = tag;
	return 0;
}

/* A program's first instructions: nobody has called them, and the stack is as the kernel left it.
 * The dynamic linker's, where every program starts, have no call frame information. */
static __always_inline int unwind__is_first(const struct unwind_state *u)
{
	const struct mm_struct *mm = task__mm(bpf_get_current_task_btf());

	return u->leaf && mm && u->sp == BPF_CORE_READ(mm, start_stack);
}

/* What to do where no table covers the pc, and no runtime knows better: JIT code keeps frame
 * pointers, or nothing can help. */
__noinline int unwind__without_rule(struct unwind_state *u)
{
	struct unwind_rule *rule;

	if (!u)
		return COUNT_TABLE;
	rule = &u->rule;
	/* psABI: rbp 0 marks the deepest frame */
	if ((!u->leaf && !u->rbp_lost && !u->rbp) || unwind__is_first(u)) {
		rule->kind = UNWIND_END;
		rule->reg = UNWIND_REG_RSP;
		return 0;
	}
	if (unwind__is_sigreturn(u)) {
		rule->kind = UNWIND_SIGNAL;
		return 0;
	}
	if (u->rbp_lost || u->rbp < u->sp || u->rbp & 7)
		return COUNT_NO_RULE;
	rule->kind = UNWIND_REG;
	rule->reg = UNWIND_REG_RBP;
	rule->cfa_off = 16;
	rule->rbp_words = -2;
	rule->rbx_words = UNWIND_WORDS_LOST;
	return 0;
}

#endif
