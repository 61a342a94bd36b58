/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_UNWIND_TABLELESS_BPF_H
#define BRAID_UNWIND_TABLELESS_BPF_H

#include "bpf/scratch.bpf.h"

/* Frames of code that no table covers. */

/* `mov $15,%rax; syscall`: the signal trampoline of a C library without unwind information. In a
 * recursion of compiled code one frame after the other has the same address. */
__noinline int unwind__is_sigreturn(struct unwind_state *u)
{
	__u64 code = 0;

	if (!u || u->pc == u->plain || bpf_probe_read_user(&code, sizeof(code), (void *)u->pc))
		return 0;
	if (code == 0x0f0000000fc0c748ULL)
		return 1;
	u->plain = u->pc;
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
