/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_UNWIND_TABLELESS_BPF_H
#define BRAID_UNWIND_TABLELESS_BPF_H

#include "bpf/tableless.bpf.h"

/* Frames of code that no table covers. */

/* rt_sigreturn's frame: a ucontext at rsp, general registers from byte 40 in the order r8..r15,
 * rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, then the flags, and the segments with cs in the
 * lowest bits (arch/x86/include/uapi/asm/sigcontext.h). */
#define UCONTEXT_REGS_AT 40
#define UCONTEXT_REGS	 17
#define UCONTEXT_CS_AT	 (UCONTEXT_REGS_AT + 8 * (UCONTEXT_REGS + 1))

#define CS_64	  0x33 /* __USER_CS; under Xen it is FLAT_USER_CS64 */
#define CS_64_XEN 0xe033

/* Could a signal's frame be at the stack pointer? The word is most often read already, or serves
 * the frames outside, so that this costs less than to look at the code. */
static __always_inline int unwind__may_be_signal(struct unwind_state *u)
{
	__u64 at = u->sp + UCONTEXT_CS_AT - u->block_start;

	if (!u->block_start || at >= u->block_bytes)
		block__fill(u, u->sp);
	if (stack__read(u, u->sp + UCONTEXT_CS_AT))
		return 1; /* who knows */
	return (__u16)u->value == CS_64 || (__u16)u->value == CS_64_XEN;
}

/* `mov $15,%rax; syscall`: the signal trampoline of a C library without unwind information. */
__noinline int unwind__is_sigreturn(struct unwind_state *u)
{
	__u64 code = 0;

	if (!u || !unwind__may_be_signal(u))
		return 0;
	return !bpf_probe_read_user(&code, sizeof(code), (void *)u->pc) &&
	       code == 0x0f0000000fc0c748ULL;
}

/* The frame in which a program starts: nothing has called it, and its stack pointer is where the
 * kernel has set it. The dynamic linker's, in which every program starts, has no call frame
 * information, and calls constructors with that stack pointer (_dl_start_user). */
static __always_inline int unwind__is_first(const struct unwind_state *u)
{
	const struct mm_struct *mm = task__mm(bpf_get_current_task_btf());

	return mm && u->sp == BPF_CORE_READ(mm, start_stack);
}

/* What to do where no table covers the pc, and no runtime knows better: JIT code keeps frame
 * pointers, or nothing can help. */
__noinline int unwind__without_rule(struct unwind_state *u)
{
	struct unwind_rule *rule;

	if (!u)
		return COUNT_TABLE;
	rule = &u->rule;
	/* Where callers are known, the hooks have looked for one among the words of the stack. */
	u->note.lasts = u->mapping.n_pages || !u->mapping.callers.start;
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
