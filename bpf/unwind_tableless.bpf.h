/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_UNWIND_TABLELESS_BPF_H
#define BRAID_UNWIND_TABLELESS_BPF_H

#include "bpf/scratch.bpf.h"

/* Frames of code that no table covers. */

/* `mov $15,%rax; syscall`: the signal trampoline of a C library without unwind information. */
__noinline int unwind__is_sigreturn(__u64 pc)
{
	__u64 code = 0;

	return !bpf_probe_read_user(&code, sizeof(code), (void *)pc) &&
	       code == 0x0f0000000fc0c748ULL;
}

/* The perf trampolines of CPython 3.12 and 3.13 (-X perf: Python/asm_trampoline.S, x86-64) have no
 * frame pointers either:
 *   sub $8,%rsp; call *%rcx; add $8,%rsp; ret
 * What is ahead of the pc says where the return address is. */
#define STUB_ENTRY  0xc48348d1ff08ec83ULL /* ... from its second byte on */
#define STUB_CALL   0xc308c48348d1ffULL
#define STUB_RETURN 0xc308c48348ULL

/* CFA - rsp; 0: the pc is not in such code. */
static __always_inline int stub__cfa_off(const struct unwind_state *u)
{
	__u64 code, next;

	if (bpf_probe_read_user(&code, sizeof(code), (void *)u->pc))
		return 0;
	if ((code & 0xffffffffffULL) == STUB_RETURN)
		return 16;
	if (!u->leaf)
		return 0;
	if ((code & 0xffffffffffffffULL) == STUB_CALL)
		return 16;
	return (code & 0xff) == 0x48 &&
			       !bpf_probe_read_user(&next, sizeof(next), (void *)u->pc + 1) &&
			       next == STUB_ENTRY
		       ? 8
		       : 0;
}

/* Code that CRuby's YJIT made (yjit/src/codegen.rs, gen_entry_prologue, at 3.1 to 3.4) pushes the
 * caller's r13, r12 and rbx and leaves rbp alone; with --yjit-perf it pushes rbp twice before. What
 * else it pushes around calls are Ruby's values. So the first word that is an address in the
 * interpreter loop is the return address. */
#define JIT_FRAME_WORDS 24
#define JIT_SAVED_WORDS 3

static __always_inline int jit__rule(struct unwind_state *u)
{
	__u64 words[JIT_FRAME_WORDS], from = u->mapping.vaddr_start, size = u->mapping.rules_at;
	struct unwind_rule *rule = &u->rule;
	__u32 i, at = JIT_FRAME_WORDS, saved = JIT_SAVED_WORDS;

	if (u->mapping.n_pages || !from || bpf_probe_read_user(words, sizeof(words), (void *)u->sp))
		return 0;
	for (i = 0; i < JIT_FRAME_WORDS; i++)
		if (at == JIT_FRAME_WORDS && words[i] - from < size)
			at = i;
	if (at == JIT_FRAME_WORDS)
		return 0;
	rule->kind = UNWIND_REG;
	rule->reg = UNWIND_REG_RSP;
	rule->cfa_off = 8 * (at + 1);
	if (u->rbp == u->sp + 8 * at - 8) { /* with frame pointers */
		rule->rbp_words = -2;
		saved += 2;
	}
	if (at >= saved)
		rule->rbx_words = -(saved + 1);
	return 1;
}

/* A program's first instructions: nobody has called them, and the stack is as the kernel left it.
 * The dynamic linker's, where every program starts, have no call frame information. */
static __always_inline int unwind__is_first(const struct unwind_state *u)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return u->leaf && task->mm && u->sp == BPF_CORE_READ(task->mm, start_stack);
}

/* What to do where no table covers the pc: JIT code keeps frame pointers, or nothing can help. */
__noinline int unwind__without_rule(struct unwind_state *u)
{
	struct unwind_rule *rule;

	if (!u)
		return COUNT_TABLE;
	if (jit__rule(u))
		return 0;
	rule = &u->rule;
	rule->cfa_off = stub__cfa_off(u);
	if (rule->cfa_off) {
		rule->kind = UNWIND_REG;
		rule->reg = UNWIND_REG_RSP;
		return 0;
	}
	/* psABI: rbp 0 marks the deepest frame */
	if ((!u->leaf && !u->rbp_lost && !u->rbp) || unwind__is_first(u)) {
		rule->kind = UNWIND_END;
		rule->reg = UNWIND_REG_RSP;
		return 0;
	}
	if (unwind__is_sigreturn(u->pc)) {
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
