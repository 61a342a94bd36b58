/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_RUBY_YJIT_BPF_H
#define BRAID_RUBY_YJIT_BPF_H

/* The current pc of the innermost control frame, if it runs code that CRuby's YJIT compiled.
 *
 * Compiled code stores its pc in the control frame before a call that may run Ruby code, collect
 * garbage or raise (jit_save_pc, yjit/src/codegen.rs). Until the next such call the control
 * frame has the earlier pc, or that of an earlier frame in its place. A control frame has no
 * mark that it is compiled; the native frames show it. From the innermost one on, code of YJIT
 * comes before rb_vm_exec, which both the interpreter and compiled code run in.
 *
 * The pc is that of the call in progress if the code before the return address stores it. None
 * of the following may lie in between:
 * - a call
 * - a jump to other compiled code
 * - a control frame that is pushed or popped
 * - the end of compiled code
 *
 * The code between such a store and its call belongs to one instruction of the virtual machine. */

#include "bpf/ruby_zjit.bpf.h"

enum yjit_place {
	YJIT_NONE,    /* the interpreter runs the frame, or no compiled code was seen so far */
	YJIT_CALLS,   /* compiled code has called a function */
	YJIT_UNKNOWN, /* compiled code itself executes, or native frames are missing */
};

/* Finds the code that runs the innermost control frame. Sets the return address in compiled code,
 * and entry_at to an address in the function that was called. */
static __always_inline int yjit__find(const struct scratch *scratch,
				      const struct ruby_proc_rec *proc, struct zjit_call *call)
{
	__u32 n = scratch->sample.n_native, absent = scratch->cached.absent, i;
	__u64 ip, address;

	if (!proc->jit_end)
		return YJIT_NONE;
	if (absent > n)
		return YJIT_UNKNOWN;
	call->entry_at = 0;
	for (i = 0; i < ZJIT_NATIVES_MAX && i < n - absent; i++) {
		ip = scratch->words[(scratch->sample.n_kernel + 2 * i) & (SAMPLE_WORDS_MAX - 1)];
		address = NATIVE_ADDRESS(ip);
		if (address - proc->jit_start < proc->jit_end - proc->jit_start) {
			call->returns = address;
			return ip & NATIVE_EXACT ? YJIT_UNKNOWN : YJIT_CALLS;
		}
		if (address - proc->exec_start < proc->exec_end - proc->exec_start)
			return YJIT_NONE;
		call->entry_at = address;
	}
	/* Frames of compiled code, and frames inside them, are never reused from an earlier
	 * sample. */
	return absent && i == n - absent ? YJIT_NONE : YJIT_UNKNOWN;
}

/* mov %r13,16(%r12): the control frame becomes the execution context's. The upper 5 bytes. */
#define YJIT_SETS_FRAME 0x10246c894dULL
/* pop %rbx; pop %r12; pop %r13: back to the interpreter. */
#define YJIT_RETURNS	0x5d415c415bULL

static __always_inline int yjit__leaves(const struct zjit_call *call, __u32 i)
{
	__u64 last5 = call->last_bytes >> 24, target;

	if (last5 == YJIT_SETS_FRAME || last5 == YJIT_RETURNS)
		return 1;
	if ((last5 & 0xff) != 0xe9)
		return 0;
	target = call->returns - ZJIT_BEFORE + i + 1 + (__s64)(__s32)(call->last_bytes >> 32);
	return target - call->code_start < call->code_end - call->code_start;
}

/* Returns true if the instruction that ends here has the pc as its operand: `movabs`, or for a
 * low pc `movq $pc,(%r13)`, or `mov $pc` to %eax or another register. */
static __always_inline int yjit__stores(const struct zjit_call *call)
{
	__u64 last_bytes = call->last_bytes;

	if (last_bytes == call->record)
		return 1;
	if (last_bytes >> 32 != call->record)
		return 0;
	return (__u32)last_bytes == 0x0045c749 || (last_bytes >> 24 & 0xf8) == 0xb8;
}

static __always_inline void yjit__step(struct zjit_call *call, __u32 i)
{
	call->last_bytes = call->last_bytes >> 8 | (__u64)call->code[i & (ZJIT_BEFORE - 1)] << 56;
	if (yjit__stores(call))
		call->stores = 1;
	else if (i < ZJIT_BEFORE - ZJIT_CALL_BYTES &&
		 (zjit__calls(call, i) || yjit__leaves(call, i)))
		call->stores = 0;
}

#endif
