/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_JVM_INTERPRETED_BPF_H
#define BRAID_JVM_INTERPRETED_BPF_H

/* Rules for frames of HotSpot's interpreter, and for the start and the end of an interpreted
 * method, where it has no frame. Includes functions that all rules for HotSpot's code share. */

#include "bpf/jvm_blobs.bpf.h"
#include "bpf/jvm_numbers.bpf.h"
#include "bpf/return_address.bpf.h"
#include "bpf/tableless.bpf.h"

#define INTERPRETED_MOVED_MAX 32768 /* limit for moves of a frame's end; bytes */

/* The first bytes of code that is read as a number. */
#define CODE3(code) ((code)&0xffffff)
#define CODE4(code) ((code)&0xffffffff)
#define CODE6(code) ((code)&0xffffffffffffULL)

/* --- rules --- */

static __always_inline void rule__set(struct unwind_state *u, __u32 reg, int cfa_off, int fp_words)
{
	u->rule.kind = UNWIND_REG;
	u->rule.reg = reg;
	u->rule.cfa_off = cfa_off;
	u->rule.fp_words = fp_words;
	u->rule.aux_words = UNWIND_WORDS_LOST; /* Java code saves no register for its caller */
}

/* Returns true if @pc lies in the code cache. Global, so that the verifier checks it once. */
__noinline int pc__is_jvm(const struct jvm_proc_rec *proc, __u64 pc)
{
	return proc && heap__find(proc, pc);
}

static __always_inline int returns_to_jvm(struct unwind_state *u, const struct jvm_proc_rec *proc,
					  __u64 address)
{
	return !stack__read(u, address) && pc__is_jvm(proc, u->value);
}

/* Results of functions that search a rule, besides 0 and 1. */
#define JVM_AGAIN  2 /* u->pc has changed, search again */
#define JVM_LISTED 3 /* the JVM's code, without a rule */
#define JVM_CUT	   4 /* the same, where the stack ends */

/* Returns the result for code of the JVM whose return address is at no place that its rules allow.
 * If the place is unreadable, u->rule remains, and fails for that reason. */
static __always_inline int rule__cut(struct unwind_state *u)
{
	return stack__read(u, u->sp + u->rule.cfa_off - 8) ? 1 : JVM_CUT;
}

/* Moves to the caller if the frame is gone and its return address was popped to rdx. Returns 1
 * if so. */
static __always_inline int jvm__step_popped(struct unwind_state *u, const struct jvm_proc_rec *proc)
{
	__u64 pc = u->regs[UNWIND_REG_RDX];

	if (!u->leaf || !pc__is_jvm(proc, pc))
		return 0;
	u->pc = pc;
	u->exact = u->leaf = 0;
	return 1;
}

/* Moves to the caller if the frame is gone: the return address is @pc, from a register, and the
 * caller's stack pointer is @sp. Returns 1 if so. */
static __always_inline int jvm__is_popped(struct unwind_state *u, const struct jvm_proc_rec *proc,
					  __u64 pc, __u64 sp)
{
	if (!u->leaf || !pc__is_jvm(proc, pc) || sp < u->sp || sp & 7 ||
	    sp - u->sp > INTERPRETED_MOVED_MAX)
		return 0;
	u->pc = pc;
	u->sp = sp;
	u->exact = u->leaf = 0;
	return 1;
}

#define INSN_PUSH_RDX	0x52
#define EXCEPTION_WORDS 2 /* words of an exception blob's frame: rbp, return address */

/* An exception blob is entered by a jump, with the return address in rdx. It pushes that
 * address, and pops it again before it jumps to the handler
 * (OptoRuntime::generate_exception_blob). Several instructions follow the pop, with the address
 * in rdx and in the thread (r15). @at is the offset in the code. Returns true if the blob has no
 * frame, since the frame of u->rule does not return to the address. */
static __always_inline int exception__is_popped(struct unwind_state *u,
						const struct jvm_proc_rec *proc, __u32 at)
{
	__u64 pc = u->regs[UNWIND_REG_RDX], thrown = 0;
	__u8 code = 0;

	if (!proc->exception_pc || !pc__is_jvm(proc, pc))
		return 0;
	if (!at)
		return !jvm__read(&code, sizeof(code), u->pc) && code == INSN_PUSH_RDX;
	if (jvm__read(&thrown, sizeof(thrown), u->regs[UNWIND_REG_R15] + proc->exception_pc) ||
	    thrown != pc)
		return 0;
	return stack__read(u, u->sp + u->rule.cfa_off - 8) || u->value != pc;
}

#define INTERPRETED_WORDS      8
#define CONST_METHOD_BYTES_MAX (64 * 1024 + 512) /* offset of its last bytecode, at most */

/* Returns the bytecode's address that the interpreted frame with these @words has saved. */
static __always_inline __u64 interpreted__bcp(const struct jvm_proc_rec *proc,
					      const __u64 words[INTERPRETED_WORDS])
{
	return proc->bcp_words == JVM_BCP_WORDS_8 ? words[INTERPRETED_WORDS - JVM_BCP_WORDS_8]
						  : words[INTERPRETED_WORDS - JVM_BCP_WORDS];
}

/* Returns true if the innermost frame lacks the bytecode's address, as its entry still pushes
 * words. The words below the stack pointer may be those of an earlier frame. */
static __always_inline int interpreted__is_pushed(const struct unwind_state *u,
						  const struct jvm_proc_rec *proc)
{
	return u->leaf && u->rbp - u->sp < 8 * (proc->bcp_words == JVM_BCP_WORDS_8 ? JVM_BCP_WORDS_8
										   : JVM_BCP_WORDS);
}

/* Returns the Method. It is in rbx until the entry pushes it. */
static __always_inline __u64 interpreted__method(const struct unwind_state *u,
						 const __u64 words[INTERPRETED_WORDS])
{
	if (u->leaf && u->rbp - u->sp < -8 * INTERPRETED_METHOD)
		return u->regs[UNWIND_REG_RBX];
	return words[INTERPRETED_WORDS + INTERPRETED_METHOD];
}

/* Returns true if rbp is that of an interpreted frame. An entry has not made its frame yet, and
 * stubs in the same buffer never do. There, rbp is the caller's, and the words are not those of
 * a method with a place in its bytecodes, which is *@ret_bcp. Native methods have no such place.
 * An entry has the method in rbx. It has the sender's stack pointer in r13 first, and then that
 * place (generate_fixed_frame). */
static __always_inline int interpreted__is_built(const struct unwind_state *u,
						 const struct jvm_proc_rec *proc,
						 const __u64 words[INTERPRETED_WORDS],
						 __u64 *ret_bcp)
{
	__u64 live = u->regs[UNWIND_REG_R13];
	__u64 sender_sp = words[INTERPRETED_WORDS + INTERPRETED_SENDER_SP];
	__u64 method = interpreted__method(u, words), const_method = 0;
	__u64 bcp = interpreted__bcp(proc, words);

	*ret_bcp = bcp;
	if (sender_sp <= u->rbp || sender_sp - u->rbp > INTERPRETED_MOVED_MAX)
		return 0;
	if (!u->leaf)
		return 1;
	if (u->rbp - u->sp < -8 * INTERPRETED_SENDER_SP)
		return 0;
	if (jvm__read(&const_method, sizeof(const_method),
		      method + proc->offsets.method_const_method) ||
	    !const_method)
		return 0;
	if (!interpreted__is_pushed(u, proc) &&
	    (!bcp || bcp - const_method < CONST_METHOD_BYTES_MAX))
		return 1;
	if (live - const_method < CONST_METHOD_BYTES_MAX)
		*ret_bcp = live;
	else if (interpreted__is_pushed(u, proc) && method == u->regs[UNWIND_REG_RBX] &&
		 live == sender_sp)
		*ret_bcp = const_method + proc->offsets.const_method_bytes;
	else
		return 0;
	return 1;
}

#define ENTRY_BYTES (8 * INTERPRETED_WORDS) /* bytes that an entry pushes below rbp */

/* Returns true if an entry has set rbp, but not yet pushed all words of its frame. */
static __always_inline int interpreted__is_entered(struct unwind_state *u,
						   const struct jvm_proc_rec *proc)
{
	return u->leaf && !u->rbp_lost && u->rbp - u->sp < ENTRY_BYTES &&
	       returns_to_jvm(u, proc, u->rbp + 8);
}

/* Reads the words that end at rbp. */
static __always_inline int interpreted__read(struct unwind_state *u, __u64 words[INTERPRETED_WORDS])
{
	__u64 start = u->rbp - 8 * INTERPRETED_WORDS, at;
	int i;

	if (stack__have(u, start, 8 * INTERPRETED_WORDS, &at))
		return jvm__read(words, 8 * INTERPRETED_WORDS, start);
	for (i = 0; i < INTERPRETED_WORDS; i++)
		words[i] = u->block[(at + i) & (BLOCK_WORDS - 1)];
	return 0;
}

static __always_inline void interpreted__note(struct unwind_state *u,
					      const struct jvm_proc_rec *proc,
					      const __u64 words[INTERPRETED_WORDS])
{
	u->note.lasts = 1;
	u->note.mask = 1U << (-1 - INTERPRETED_SENDER_SP) | 1U << (-1 - INTERPRETED_METHOD);
	u->note.mask |= proc->bcp_words == JVM_BCP_WORDS_8 ? 1U << (JVM_BCP_WORDS_8 - 1)
							   : 1U << (JVM_BCP_WORDS - 1);
	for (int i = 0; i < INTERPRETED_WORDS; i++)
		u->note.words[i] = words[INTERPRETED_WORDS - 1 - i];
}

/* Sets caller_sp from r13, in which an entry has the caller's stack pointer. Arguments that
 * compiled code has in registers were pushed since. Elsewhere r13 is not an address of the
 * stack. */
static __always_inline void interpreted__set_sender(struct unwind_state *u)
{
	__u64 sender = u->regs[UNWIND_REG_R13];

	if (u->leaf && !(sender & 7) && sender - u->sp <= INTERPRETED_MOVED_MAX)
		u->caller_sp = sender;
}

/* Returns true if @pc is in the interpreter, which pushes its return addresses, or in the call
 * stub. */
static __always_inline int jvm__is_entry(const struct jvm_proc_rec *proc, __u64 pc)
{
	return pc - proc->interpreter_start < proc->interpreter_end - proc->interpreter_start ||
	       pc == proc->call_stub_return;
}

/* Returns true if @pc is a return address of the JVM's code: it follows a call, or the
 * interpreter has pushed it. */
static __always_inline int pc__is_returned_to(struct unwind_state *u,
					      const struct jvm_proc_rec *proc, __u64 pc)
{
	return pc__is_jvm(proc, pc) && (jvm__is_entry(proc, pc) || insn__follows_call(u, pc));
}

/* The first instructions after a return to the interpreter. They restore the stack pointer from
 * the frame, and then r13, which until then is the callee's (generate_return_entry_for). */
#define CODE5(code)	((code)&0xffffffffffULL)
#define INSN_LOAD_RSP	0xf0658b48U	/* mov rsp, [rbp - 16] */
#define INSN_LOAD_RCX	0x48f04d8b48ULL /* mov rcx, [rbp - 16], of JDK 20 and later; ... */
#define INSN_LEA_RSP	0xcd648d48U	/* ... lea rsp, [rbp + 8 * rcx] */
#define INSN_CLEAR_LAST 0xf045c748U	/* mov qword [rbp - 16], 0 */
#define INSN_LOAD_R13	0x6d8b4c	/* mov r13, [rbp + ib] */

/* Returns true if a callee has just returned to the interpreter, whose frame is at rbp. @code is
 * at the pc. */
static __always_inline int interpreted__is_returned_to(const struct unwind_state *u, __u64 code)
{
	return u->leaf && !u->rbp_lost &&
	       (CODE4(code) == INSN_LOAD_RSP || CODE5(code) == INSN_LOAD_RCX ||
		CODE4(code) == INSN_LEA_RSP || CODE4(code) == INSN_CLEAR_LAST ||
		CODE3(code) == INSN_LOAD_R13);
}

/* The last instructions of an interpreted method: the return address goes to r13, the caller's
 * stack pointer from rbx to rsp, and a jump follows. JDK 20 to 24 have a check before the jump
 * (InterpreterMacroAssembler::remove_activation). Elsewhere r13 is not an address of code, but a
 * bytecode's address, or the caller's stack pointer. */
#define INSN_POP_R13	 0x5d41 /* pop r13; mov rsp, rbx */
#define INSN_RSP_RBX	 0xe38b48
#define INSN_CLEAR_FLAG	 0x87c641 /* movb $0, disp32(%r15): JDK 25 has it before these */
/* Entries of mathematics and checksums make no frame, and have the stack pointer in r13. */
#define INSN_POP_RAX_R13 0xe0ffe58b4958ULL /* pop rax; mov rsp, r13; jmp rax */
#define INSN_POP_RDI_R13 0xe7ffe58b495fULL
#define INSN_RSP_R13	 0xe58b49
#define INSN_JMP_RAX	 0xe0ff
#define INSN_JMP_RDI	 0xe7ff

/* Returns the register that has the return address, after the pop of an entry without a frame; -1:
 * the pc is elsewhere. */
static __always_inline int end__register(__u64 before, __u64 at)
{
	__u32 jump = CODE3(at) == INSN_RSP_R13	    ? at >> 24 & 0xffff
		     : before >> 40 == INSN_RSP_R13 ? at & 0xffff
						    : 0;

	return jump == INSN_JMP_RAX ? UNWIND_REG_RAX : jump == INSN_JMP_RDI ? UNWIND_REG_RDI : -1;
}

/* Returns true if a return address is in one of the places that such an end uses. */
static __always_inline int end__is_possible(struct unwind_state *u, const struct jvm_proc_rec *proc)
{
	return returns_to_jvm(u, proc, u->sp) ||
	       (u->leaf && (pc__is_jvm(proc, u->regs[UNWIND_REG_R13]) ||
			    pc__is_jvm(proc, u->regs[UNWIND_REG_RAX]) ||
			    pc__is_jvm(proc, u->regs[UNWIND_REG_RDI])));
}

/* Sets the rule for the end of an interpreted method. Returns 1 if there is a rule, JVM_AGAIN,
 * or 0 if the pc is elsewhere. */
static __always_inline int interpreted__is_left(struct unwind_state *u,
						const struct jvm_proc_rec *proc)
{
	__u64 code[3], end, sender = u->regs[UNWIND_REG_R13];
	int is_end, reg;

	if ((!u->leaf && u->n > 1) || !end__is_possible(u, proc) ||
	    jvm__read(code, sizeof(code), u->pc - 8) || interpreted__is_returned_to(u, code[1]))
		return 0;
	end = CODE3(code[1]) == INSN_CLEAR_FLAG && !(code[1] >> 56) ? code[2] : code[1];
	is_end = u->leaf && (end & 0xffff) == INSN_POP_R13 && CODE3(end >> 16) == INSN_RSP_RBX;
	if (is_end)
		sender = u->regs[UNWIND_REG_RBX];
	if (is_end || CODE6(code[1]) == INSN_POP_RAX_R13 || CODE6(code[1]) == INSN_POP_RDI_R13) {
		if (!returns_to_jvm(u, proc, u->sp))
			return 0;
		rule__set(u, UNWIND_REG_RSP, 8, UNWIND_WORDS_SAME);
		if (!(sender & 7) && sender - u->sp - 8 <= INTERPRETED_MOVED_MAX)
			u->caller_sp = sender;
		return 1;
	}
	if (!u->leaf)
		return 0;
	if (pc__is_returned_to(u, proc, u->regs[UNWIND_REG_R13]))
		return jvm__is_popped(u, proc, u->regs[UNWIND_REG_R13],
				      CODE3(code[1]) == INSN_RSP_RBX ? u->regs[UNWIND_REG_RBX]
								     : u->sp)
			       ? JVM_AGAIN
			       : 0;
	reg = end__register(code[0], code[1]);
	if (reg < 0)
		return 0;
	return jvm__is_popped(u, proc, u->regs[reg & 15],
			      CODE3(code[1]) == INSN_RSP_R13 ? u->regs[UNWIND_REG_R13] : u->sp)
		       ? JVM_AGAIN
		       : 0;
}

/* The instructions between `pop rax` and `push rax` of an entry (generate_normal_entry), which put
 * the method's variables on the stack. */
#define INSN_POPPED_LEA	   0xf8cc748d4cULL	 /* lea r14, [rsp + 8 * rcx - 8] */
#define INSN_POPPED_TEST   0x8e0fd285U		 /* test edx, edx; jle */
#define INSN_POPPED_TESTED 0xd285f8cc748d4cULL	 /* these two, without the jump */
#define INSN_POPPED_ZERO   0x7fcaff0000000068ULL /* push 0; dec edx; jg */
#define INSN_POPPED_DEC	   0xf77fcaffU		 /* dec edx; jg */
#define INSN_POPPED_JG	   0x50f77f		 /* jg; push rax */
#define INSN_POPPED_PUSH   0xec8b485550ULL	 /* push rax; push rbp; mov rbp, rsp */

/* @code begins 8 bytes before the pc. */
static __always_inline int entry__has_popped(const __u64 code[2])
{
	if (code[0] >> 24 == INSN_POPPED_LEA)
		return CODE4(code[1]) == INSN_POPPED_TEST;
	if (code[0] >> 8 == INSN_POPPED_TESTED)
		return 1;
	return CODE5(code[1]) == INSN_POPPED_LEA || code[1] == INSN_POPPED_ZERO ||
	       CODE4(code[1]) == INSN_POPPED_DEC || CODE3(code[1]) == INSN_POPPED_JG ||
	       CODE5(code[1]) == INSN_POPPED_PUSH;
}

/* Sets the unwind rule for a pc in the entry code of an interpreted method that compiled code has
 * called. The method has no frame yet, so rbp may be that of an interpreted frame further out. The
 * return address is on top of the stack, or popped to rax, to be pushed after the method's
 * variables. Returns 1 if there is a rule, JVM_AGAIN, or 0 otherwise. */
static __always_inline int interpreted__is_called(struct unwind_state *u,
						  const struct jvm_proc_rec *proc)
{
	__u64 pc = u->regs[UNWIND_REG_RAX], sender = u->regs[UNWIND_REG_R13], code[2];

	if (!u->leaf || sender & 7 || sender - u->sp > INTERPRETED_MOVED_MAX)
		return 0; /* the bytecodes' address is in r13 */
	if (jvm__read(code, sizeof(code), u->pc - 8))
		code[0] = code[1] = 0;
	if (interpreted__is_returned_to(u, code[1]))
		return 0; /* r13 is still the callee's */
	if (entry__has_popped(code))
		return jvm__is_popped(u, proc, pc, sender) ? JVM_AGAIN : 0;
	if (returns_to_jvm(u, proc, u->sp) && !jvm__is_entry(proc, u->value) &&
	    insn__follows_call(u, u->value)) {
		rule__set(u, UNWIND_REG_RSP, 8, UNWIND_WORDS_SAME);
		interpreted__set_sender(u);
		return 1;
	}
	if (!pc__is_jvm(proc, pc) || jvm__is_entry(proc, pc) || !insn__follows_call(u, pc))
		return 0;
	return jvm__is_popped(u, proc, pc, sender) ? JVM_AGAIN : 0;
}

/* As blob__rule, for the interpreter's code. */
__noinline int interpreted__rule(struct unwind_state *u, struct jvm_state *state,
				 const struct jvm_proc_rec *proc, struct jvm_frame *ret)
{
	__u64 words[INTERPRETED_WORDS], bcp = 0;
	int outcome;

	if (!u || !state || !proc || !ret)
		return 0;
	ret->kind = JVM_BLOB;
	ret->blob = 0;
	ret->code = proc->interpreter_start;
	ret->at = u->pc - ret->code;
	outcome = interpreted__is_left(u, proc);
	if (!outcome)
		outcome = interpreted__is_called(u, proc);
	if (outcome)
		return outcome;
	if (u->rbp_lost || u->rbp < u->sp || u->rbp - u->sp > JVM_FRAME_BYTES_MAX || u->rbp & 7 ||
	    interpreted__read(u, words) || !interpreted__is_built(u, proc, words, &bcp)) {
		rule__set(u, UNWIND_REG_RSP, 8, UNWIND_WORDS_SAME);
		if (returns_to_jvm(u, proc, u->sp)) {
			interpreted__set_sender(u);
			return 1;
		}
		if (interpreted__is_entered(u, proc)) {
			rule__set(u, UNWIND_REG_RBP, 16, -2);
			u->caller_sp = u->regs[UNWIND_REG_R13];
			if (u->sp < u->rbp && !stack__read(u, u->rbp - 8))
				u->caller_sp = u->value;
			return 1;
		}
		/* Between the two instructions that make the frame. */
		if (u->leaf && !stack__read(u, u->sp) && u->value == u->rbp &&
		    returns_to_jvm(u, proc, u->sp + 8)) {
			rule__set(u, UNWIND_REG_RSP, 16, -2);
			interpreted__set_sender(u);
			return 1;
		}
		return jvm__step_popped(u, proc) ? JVM_AGAIN : rule__cut(u);
	}
	rule__set(u, UNWIND_REG_RBP, 16, -2);
	ret->kind = JVM_INTERPRETED;
	ret->blob = interpreted__method(u, words);
	ret->bcp = bcp;
	/* The frame of a compiled caller ends at this address, as arguments were moved. */
	u->caller_sp = words[INTERPRETED_WORDS + INTERPRETED_SENDER_SP];
	interpreted__note(u, proc, words);
	return 1;
}

#endif
