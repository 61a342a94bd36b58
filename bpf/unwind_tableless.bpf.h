/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_UNWIND_TABLELESS_BPF_H
#define BRAID_UNWIND_TABLELESS_BPF_H

#include "bpf/frame_pointer.bpf.h"
#include "bpf/tableless.bpf.h"

/* Frames of code that no table covers. */

/* rt_sigreturn's frame: a ucontext at rsp. General registers begin at byte 40 in the order r8..r15,
 * rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip. Then follow the flags, and the segments with cs in
 * the lowest bits (arch/x86/include/uapi/asm/sigcontext.h). */
#define UCONTEXT_REGS_AT 40
#define UCONTEXT_REGS	 17
#define UCONTEXT_CS_AT	 (UCONTEXT_REGS_AT + 8 * (UCONTEXT_REGS + 1))

#define CS_64	  0x33 /* __USER_CS; under Xen it is FLAT_USER_CS64 */
#define CS_64_XEN 0xe033

/* Returns 1 if a signal's frame may be at the stack pointer. Most often the word is already read,
 * or is used for the outer frames, so that this costs less than reading the code. */
static __always_inline int unwind__may_be_signal(struct unwind_state *u)
{
	__u64 at = u->sp + UCONTEXT_CS_AT - u->block_start;

	if (!u->block_start || at >= u->block_bytes)
		block__fill(u, u->sp);
	if (stack__read(u, u->sp + UCONTEXT_CS_AT))
		return 1; /* unknown */
	return (__u16)u->value == CS_64 || (__u16)u->value == CS_64_XEN;
}

/* Returns 1 if the code at the pc is `mov $15,%rax; syscall`, the signal trampoline of a C library
 * without unwind information. */
__noinline int unwind__is_sigreturn(struct unwind_state *u)
{
	__u64 code = 0;

	if (!u || !unwind__may_be_signal(u))
		return 0;
	return !bpf_probe_read_user(&code, sizeof(code), (void *)u->pc) &&
	       code == 0x0f0000000fc0c748ULL;
}

#define STACK_UNKNOWN (~0ULL)

/* Returns the stack pointer of the program's first instruction, as set by the kernel; read once per
 * sample. 0: unknown. */
static __always_inline __u64 unwind__start_stack(struct unwind_state *u)
{
	const struct mm_struct *mm;

	if (u->start_stack == STACK_UNKNOWN) {
		mm = task__mm(bpf_get_current_task_btf());
		u->start_stack = mm ? BPF_CORE_READ(mm, start_stack) : 0;
	}
	return u->start_stack;
}

/* Returns 1 for the frame in which a program starts. Nothing has called it, and its stack pointer
 * is as set by the kernel. Every program starts in the first frame of the dynamic linker, which has
 * no call frame information, and calls constructors with that stack pointer (_dl_start_user). */
static __always_inline int unwind__is_first(struct unwind_state *u)
{
	return u->sp == unwind__start_stack(u);
}

#define START_BYTES_MAX 32

/* Returns 1 for the program's first frame when it calls a function that must not return. Before
 * that, its code pops the number of arguments, and aligns the stack. A frame at most
 * START_BYTES_MAX bytes below the first stack pointer has no space for a caller. Files without call
 * frame information have no rule for it. */
static __always_inline int unwind__has_started(struct unwind_state *u)
{
	return u->n && !u->exact && u->keeps && unwind__start_stack(u) - u->sp <= START_BYTES_MAX &&
	       pc__is_hlt(u);
}

/* Returns 1 for counters of return addresses that are not code. */
static __always_inline int is_no_code(int err)
{
	return err >= COUNT_ADDRESS_DATA && err <= COUNT_NO_CALL;
}

/* Returns 1 for counters of a pc whose mapping is unknown. */
static __always_inline int is_unread(int err)
{
	return err == COUNT_NO_MAPPINGS || err == COUNT_TORN_MAPPINGS || err == COUNT_UNMAPPED_PC ||
	       err == COUNT_ENDED_MAPPING || err == COUNT_MAPPINGS_FULL;
}

/* Returns 1 if the return address at u->pc is not shown as a frame. If its mapping is not read yet,
 * the kernel's own list can prove that it is code. If that list is unavailable, there is no
 * proof. */
static __always_inline int unwind__is_no_frame(const struct unwind_state *u, int err)
{
	return u->n && !u->exact && (is_no_code(err) || (is_unread(err) && !u->searched));
}

/* Finds a rule if no table covers the pc, and no runtime has one. @is_proven: a runtime guarantees
 * the pc, and frame pointers; with TABLELESS_GUESS these are inferred. In a file that has tables,
 * code without a rule may use rbp for any purpose, unless unwind_state.keeps has a flag. */
__noinline int unwind__without_rule(struct unwind_state *u, __u32 space, int is_proven)
{
	struct unwind_rule *rule;
	int by_pointer, ends;

	if (!u)
		return COUNT_TABLE;
	rule = &u->rule;
	/* If callers are published, the hooks have searched the words of the stack for one. */
	u->note.lasts = u->mapping.n_pages || !u->mapping.callers.start;
	if (unwind__is_sigreturn(u)) {
		rule->kind = UNWIND_SIGNAL;
		return 0;
	}
	ends = unwind__is_first(u) || unwind__has_started(u);
	if (u->n && !u->exact && !is_proven && !pc__follows_call(u)) {
		ends = pc__never_returns(u);
		if (!ends)
			return COUNT_NO_CALL;
	}
	if (ends) {
		rule->kind = UNWIND_END;
		rule->reg = UNWIND_REG_RSP;
		return 0;
	}
	by_pointer = is_proven || u->keeps || !u->mapping.n_pages || cfg_unwind == UNWIND_MODE_FP;
	if ((u->leaf || (!is_proven && cfg_unwind != UNWIND_MODE_FP)) &&
	    insn__rule(u, !is_proven, by_pointer))
		return 0;
	if (!by_pointer)
		return COUNT_NO_RULE;
	if (prologue__rule(u)) {
		u->next_evidence = EVIDENCE_FRAME_POINTER;
		return 0;
	}
	__builtin_memset(rule, 0, sizeof(*rule));
	return pointer__rule(u, space, is_proven);
}

#endif
