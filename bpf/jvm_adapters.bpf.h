/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_JVM_ADAPTERS_BPF_H
#define BRAID_JVM_ADAPTERS_BPF_H

/* Interrupted blobs whose name identifies the way HotSpot has made them: adapters between
 * compiled and interpreted code, tables of calls, linkers of method handles, and the stub that
 * flushes instructions.
 *
 * An adapter moves the return address, to put arguments outside of it. It has two parts of
 * straight code (sharedRuntime_x86_64.cpp: gen_i2c_adapter, gen_c2i_adapter). Branches in it
 * lead forward, to a place with the same stack. So the place of the return address follows from
 * the instructions between the adapter's start and the pc:
 *
 *         state      return address  caller's stack pointer     begins with
 *         ENTERED    at rsp          rsp + 8; first part: r13   a part
 *         POPPED     in rax          r13                        pop rax; mov r11, rsp
 *         PUSHED     at rsp          r13                        push rax; mov [rsp], rax
 *         SAVED      at r13          r13 + 8                    mov r13, rsp; mov rax, [rsp]
 *         MOVED      unknown         unknown                    sub rsp, imm32
 *
 * SAVED is a call of the JVM, ended by `mov rsp, r13`. MOVED is another call, seen in JDK 21,
 * ended by `add rsp, imm32`. The first part ends with `jmp r11`. It may change r13 when it is
 * PUSHED. Then the return address is in the interpreter or in the call stub, or the step is
 * inferred. The interpreter and the call stub do not need the caller's stack pointer. */

#include "bpf/jvm_interpreted.bpf.h"

/* The first 8 bytes of the names of blobs. */
#define ADAPTERS_TEXT	 0x204932432f433249ULL /* "I2C/C2I " */
#define TABLES_TEXT	 0x6320656c62617476ULL /* "vtable c" */
#define FLUSH_TEXT	 0x63695f6873756c66ULL /* "flush_ic" */
#define HANDLES_TEXT	 0x6148646f6874654dULL /* "MethodHa" */
#define INSN_MOV_R13_RSP 0xec8b4c

enum { ADAPTER_ENTERED, ADAPTER_POPPED, ADAPTER_PUSHED, ADAPTER_SAVED, ADAPTER_MOVED };

#define ADAPTER_BYTES_MAX   2048
#define ADAPTER_POP_RAX	    0x58
#define ADAPTER_PUSH_RAX    0x50
#define ADAPTER_STORE_RAX   0x24048948		/* mov [rsp], rax */
#define ADAPTER_MOV_R11_RSP 0xdc8b4c		/* mov r11, rsp */
#define ADAPTER_SUB_8	    0xec8348		/* sub rsp, ib */
#define ADAPTER_SUB_32	    0xec8148		/* sub rsp, id */
#define ADAPTER_ADD_32	    0xc48148		/* add rsp, id */
#define ADAPTER_ALIGN	    0xf0e48348U		/* and rsp, -16 */
#define ADAPTER_SAVE	    0x24048b48ec8b4cULL /* mov r13, rsp; mov rax, [rsp] */
#define ADAPTER_RESTORE	    0xe58b49		/* mov rsp, r13 */
#define ADAPTER_JMP_R11	    0xe3ff41

struct adapter_scan {
	__u64 at;   /* address of the next byte */
	__u64 end;  /* the pc */
	int place;  /* state at `at` */
	int is_c2i; /* the scan is in the second part */
	int failed;
};

/* Returns true if these bytes end with an instruction that reserves or aligns space on the stack.
 * Without arguments there is no such instruction, and the bytes end with `pop rax`. */
static __always_inline int room__ends(__u64 before)
{
	return CODE3(before >> 32) == ADAPTER_SUB_8 || CODE3(before >> 8) == ADAPTER_SUB_32 ||
	       before >> 32 == ADAPTER_ALIGN || before >> 56 == ADAPTER_POP_RAX;
}

/* Returns true if these bytes begin with such an instruction or, without arguments, `push rax`. */
static __always_inline int room__begins(__u64 at)
{
	return CODE3(at) == ADAPTER_SUB_8 || CODE3(at) == ADAPTER_SUB_32 ||
	       CODE4(at) == ADAPTER_ALIGN || (at & 0xff) == ADAPTER_PUSH_RAX;
}

/* Returns the state after the instruction at `at`; -1: unchanged. */
static __always_inline int adapter__next(const struct adapter_scan *scan, __u64 before, __u64 at)
{
	int is_popped = scan->place == ADAPTER_POPPED;

	if ((at & 0xff) == ADAPTER_POP_RAX &&
	    (room__begins(at >> 8) || CODE3(at >> 8) == INSN_MOV_R13_RSP))
		return ADAPTER_POPPED;
	if (CODE3(at) == ADAPTER_MOV_R11_RSP && !scan->is_c2i && room__begins(at >> 24))
		return ADAPTER_POPPED;
	if (is_popped && ((at & 0xff) == ADAPTER_PUSH_RAX || CODE4(at) == ADAPTER_STORE_RAX) &&
	    room__ends(before))
		return ADAPTER_PUSHED;
	if ((at & 0xffffffffffffffULL) == ADAPTER_SAVE)
		return ADAPTER_SAVED;
	if (CODE3(at) == ADAPTER_RESTORE && scan->place == ADAPTER_SAVED)
		return ADAPTER_ENTERED;
	if (CODE3(at) == ADAPTER_SUB_32 && scan->place == ADAPTER_ENTERED)
		return ADAPTER_MOVED;
	if (CODE3(at) == ADAPTER_ADD_32 && scan->place == ADAPTER_MOVED)
		return ADAPTER_ENTERED;
	return -1;
}

static long adapter__scan(__u32 index __attribute__((unused)), void *ctx)
{
	struct adapter_scan *scan = ctx;
	__u64 code[2];
	int next;

	if (scan->at >= scan->end)
		return 1;
	scan->failed = jvm__read(code, sizeof(code), scan->at - sizeof(code[0]));
	if (scan->failed)
		return 1;
	if (CODE3(code[1]) == ADAPTER_JMP_R11 && scan->place == ADAPTER_PUSHED) {
		scan->is_c2i = 1;
		scan->place = ADAPTER_ENTERED;
		scan->at += 3;
		return 0;
	}
	next = adapter__next(scan, code[0], code[1]);
	scan->place = next < 0 ? scan->place : next;
	scan->at++;
	return 0;
}

/* Sets the rule for a return address at @address, outside of all that the blob has put on the
 * stack. The caller's stack pointer is @sender, unless that is 0. Returns 1, or 0 if @address
 * has no return address, or @sender is not plausible. */
static __always_inline int sender__rule(struct unwind_state *u, const struct jvm_proc_rec *proc,
					__u64 address, __u64 sender)
{
	if (address < u->sp || address - u->sp > INTERPRETED_MOVED_MAX || address & 7 ||
	    stack__read(u, address) || !pc__is_returned_to(u, proc, u->value))
		return 0;
	if (sender && (sender <= address || sender - address > INTERPRETED_MOVED_MAX || sender & 7))
		return 0;
	rule__set(u, UNWIND_REG_RSP, address - u->sp + 8, UNWIND_WORDS_SAME);
	if (sender)
		u->caller_sp = sender;
	return 1;
}

/* Infers the rule of an adapter whose instructions do not determine it. Returns 1 if there is a
 * rule, JVM_AGAIN, or 0. */
static __always_inline int adapter__infer(struct unwind_state *u, const struct jvm_proc_rec *proc)
{
	__u64 pc = u->regs[UNWIND_REG_RAX];
	__u32 code = 0;

	if (!stack__read(u, u->sp) && pc__is_returned_to(u, proc, u->value)) {
		rule__set(u, UNWIND_REG_RSP, 8, UNWIND_WORDS_SAME);
		interpreted__set_sender(u);
		u->next_evidence = EVIDENCE_INFERRED;
		return 1;
	}
	if (!pc__is_returned_to(u, proc, pc) || jvm__read(&code, sizeof(code), u->pc))
		return 0;
	return jvm__is_popped(u, proc, pc,
			      CODE3(code) == INSN_MOV_R13_RSP ? u->sp : u->regs[UNWIND_REG_R13])
		       ? JVM_AGAIN
		       : 0;
}

/* Sets the rule for the @place of an adapter's first part or, if @is_c2i is not 0, of its
 * second. The interpreter and the call stub do not need their stack pointer. Returns as
 * adapter__infer. */
static __always_inline int adapter__at(struct unwind_state *u, const struct jvm_proc_rec *proc,
				       int place, int is_c2i)
{
	__u64 r13 = u->regs[UNWIND_REG_R13], rax = u->regs[UNWIND_REG_RAX];
	int is_entry;
	__u32 code = 0;

	if (place == ADAPTER_SAVED)
		return sender__rule(u, proc, r13, 0);
	if (place == ADAPTER_POPPED) {
		if (jvm__read(&code, sizeof(code), u->pc) || !pc__is_returned_to(u, proc, rax))
			return 0;
		if (CODE3(code) == INSN_MOV_R13_RSP || (jvm__is_entry(proc, rax) && r13 < u->sp))
			r13 = u->sp;
		return jvm__is_popped(u, proc, rax, r13) ? JVM_AGAIN : 0;
	}
	if (place == ADAPTER_MOVED || stack__read(u, u->sp))
		return 0;
	is_entry = jvm__is_entry(proc, u->value);
	if (place == ADAPTER_ENTERED)
		return sender__rule(u, proc, u->sp, is_c2i || is_entry ? 0 : r13);
	if (!is_c2i && !is_entry)
		return 0;
	return sender__rule(u, proc, u->sp, is_c2i ? r13 : 0);
}

/* Sets the rule for the adapter at state->frame. Returns as adapter__infer. */
static __always_inline int adapter__rule(struct unwind_state *u, struct jvm_state *state,
					 const struct jvm_proc_rec *proc)
{
	struct adapter_scan scan = {};
	int outcome = 0;

	scan.at = state->frame.code;
	scan.end = u->pc;
	bpf_loop(ADAPTER_BYTES_MAX, adapter__scan, &scan, 0);
	if (!scan.failed && scan.at == scan.end)
		outcome = adapter__at(u, proc, scan.place, scan.is_c2i);
	return outcome ? outcome : adapter__infer(u, proc);
}

/* Linkers of method handles pop the last argument off the stack: `pop rax; pop rbx; push rax`
 * (MethodHandles::generate_method_handle_interpreter_entry). handle__rule returns as
 * adapter__infer. */
#define INSN_POPS     0x5b58
#define INSN_POP_PUSH 0x505b

static __always_inline int handle__rule(struct unwind_state *u, const struct jvm_proc_rec *proc)
{
	__u64 rax = u->regs[UNWIND_REG_RAX];
	__u32 code = 0;

	if (jvm__read(&code, sizeof(code), u->pc - 2))
		return 0;
	if (!((code >> 16) == INSN_POP_PUSH && (code >> 8 & 0xff) == ADAPTER_POP_RAX) &&
	    !((code & 0xffff) == INSN_POPS && (code >> 16 & 0xff) == ADAPTER_PUSH_RAX))
		return 0;
	return jvm__is_entry(proc, rax) && jvm__is_popped(u, proc, rax, u->sp) ? JVM_AGAIN : 0;
}

/* Results of named__rule, besides those of adapter__infer. */
#define NAMED_NOT   (-1)
#define NAMED_FLUSH (-2) /* the stub that flushes instructions, which the JVM's functions call */

/* Sets the rule for a blob whose name determines the place of its return address. Tables of
 * calls and the stub that flushes instructions do not touch the stack (vtableStubs_x86_64.cpp,
 * icache_x86.cpp). */
__noinline int named__rule(struct unwind_state *u, struct jvm_state *state,
			   const struct jvm_proc_rec *proc)
{
	__u64 text = 0;

	if (!u || !state || !proc ||
	    jvm__read(&text, sizeof(text), blob__u64(state, proc->offsets.blob_name)))
		return NAMED_NOT;
	if (text == ADAPTERS_TEXT)
		return adapter__rule(u, state, proc);
	if (text == TABLES_TEXT)
		return sender__rule(u, proc, u->sp, 0) ? 1 : NAMED_NOT;
	if (text == HANDLES_TEXT)
		return handle__rule(u, proc) ? JVM_AGAIN : NAMED_NOT;
	return text == FLUSH_TEXT ? NAMED_FLUSH : NAMED_NOT;
}

#endif
