/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_UNWIND_PROBES_BPF_H
#define BRAID_UNWIND_PROBES_BPF_H

#include "bpf/scratch.bpf.h"

/* Effects of probes, braid's or others', on a stack.
 *
 * For a probe at its return, the kernel replaces a call's return address by the address of a
 * trampoline, and stores the real one: struct return_instance, kernel/events/uprobes.c. */

#define RETURN_PROBES_MAX 65  /* maximum per thread: one more than MAX_URETPROBE_DEPTH */
#define XOL_SLOT_BYTES	  128 /* UPROBE_XOL_SLOT_BYTES, also for the trampoline */

/* Returns the real return address behind the trampoline's at @slot of the stack. 0: the kernel has
 * replaced it but not stored it yet. */
__noinline __u64 unwind__unhide(struct unwind_state *u, __u64 slot)
{
	const struct return_instance *instance;
	__u64 stack;
	__u32 i;

	if (!u)
		return 0;
	instance = (void *)u->hidden;
	for (i = 0; i < RETURN_PROBES_MAX && instance; i++) {
		stack = BPF_CORE_READ(instance, stack);
		u->value = BPF_CORE_READ(instance, orig_ret_vaddr);
		instance = BPF_CORE_READ(instance, next);
		if (stack == slot) {
			u->hidden = (__u64)instance;
			return u->value;
		}
	}
	return 0;
}

#define INSN_INT3 0xcc /* written by the kernel over a probed instruction */

/* Returns 1 if the thread has just hit a probe. The kernel sets its registers back to the probed
 * instruction a little later. */
static __always_inline int unwind__is_after_trap(const struct unwind_state *u)
{
	__u8 code = 0;

	return !bpf_probe_read_user(&code, sizeof(code), (void *)u->pc - 1) && code == INSN_INT3;
}

/* Finds the thread's real position, if it was interrupted in code of probes: a probe's trap, the
 * trampoline, or the copy of a probed instruction. */
static __always_inline void unwind__start_probes(struct unwind_state *u,
						 const struct task_struct *task, int in_kernel)
{
	const struct return_instance *instance;
	const struct uprobe_task *utask;
	const struct mm_struct *mm = task__mm(task);
	const struct xol_area *area;

	u->trampoline = u->hidden = 0;
	if (!bpf_core_field_exists(task->utask))
		return;
	utask = BPF_CORE_READ(task, utask);
	if (!utask || !mm)
		return;
	if (in_kernel && unwind__is_after_trap(u))
		u->pc--;
	area = BPF_CORE_READ(mm, uprobes_state.xol_area);
	if (!area)
		return;
	u->trampoline = BPF_CORE_READ(area, vaddr);
	instance = BPF_CORE_READ(utask, return_instances);
	u->hidden = (__u64)instance;
	if (u->pc - u->trampoline >= PAGE_BYTES)
		return;
	if (u->pc - u->trampoline < XOL_SLOT_BYTES && instance) {
		u->sp = BPF_CORE_READ(instance, stack) + 8;
		u->pc = BPF_CORE_READ(instance, orig_ret_vaddr);
		u->hidden = (__u64)BPF_CORE_READ(instance, next);
	} else if (u->pc - BPF_CORE_READ(utask, xol_vaddr) < XOL_SLOT_BYTES) {
		u->pc += BPF_CORE_READ(utask, vaddr) - BPF_CORE_READ(utask, xol_vaddr);
	}
}

#endif
