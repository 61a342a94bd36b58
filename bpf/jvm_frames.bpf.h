/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_JVM_FRAMES_BPF_H
#define BRAID_JVM_FRAMES_BPF_H

/* How to leave a frame of HotSpot's code, which has no tables and keeps no frame pointer: the code
 * cache tells the blob that a pc lies in, and a blob the size of its frames (JDK 8 to 28:
 * src/hotspot/share/code/{codeBlob,nmethod}.hpp, memory/heap.cpp, cpu/x86/frame_x86.hpp). */

#include "bpf/jvm_blobs.bpf.h"
#include "bpf/jvm_numbers.bpf.h"
#include "bpf/return_address.bpf.h"
#include "bpf/tableless.bpf.h"

/* --- rules --- */

static __always_inline void rule__set(struct unwind_state *u, __u32 reg, int cfa_off, int rbp_words)
{
	u->rule.kind = UNWIND_REG;
	u->rule.reg = reg;
	u->rule.cfa_off = cfa_off;
	u->rule.rbp_words = rbp_words;
	u->rule.rbx_words = UNWIND_WORDS_LOST; /* Java code saves no register for its caller */
}

/* Does @pc lie in the code cache? Global, so that the verifier checks it once. */
__noinline int pc__is_jvm(const struct jvm_proc_rec *proc, __u64 pc)
{
	return proc && heap__find(proc, pc);
}

static __always_inline int returns_to_jvm(struct unwind_state *u, const struct jvm_proc_rec *proc,
					  __u64 address)
{
	return !stack__read(u, address) && pc__is_jvm(proc, u->value);
}

/* Results of what looks for a rule, besides 0 and 1. */
#define JVM_AGAIN 2 /* u->pc has changed, try again */
#define JVM_NOTED 3 /* it is the JVM's code, but there is no rule */

/* The caller's frame is what there is, at a return address that was popped. */
static __always_inline int jvm__is_gone(struct unwind_state *u, const struct jvm_proc_rec *proc)
{
	__u64 pc = u->regs[UNWIND_REG_RDX];

	if (!u->leaf || !pc__is_jvm(proc, pc))
		return 0;
	u->pc = pc;
	u->exact = u->leaf = 0;
	return 1;
}

#define CODE_PUSH_RDX	0x52
#define EXCEPTION_WORDS 2 /* of an exception blob's frame: rbp, return address */

/* An exception blob is jumped to with the return address in rdx, pushes that, and pops it again
 * before it jumps to the handler (OptoRuntime::generate_exception_blob). Behind the pop it takes
 * several instructions, with the address in rdx and in the thread (r15). @at: bytes into the code.
 * Returns true if the blob has no frame, as the one that u->rule has does not return there. */
static __always_inline int exception__is_popped(struct unwind_state *u,
						const struct jvm_proc_rec *proc, __u32 at)
{
	__u64 pc = u->regs[UNWIND_REG_RDX], thrown = 0;
	__u8 code = 0;

	if (!proc->exception_pc || !pc__is_jvm(proc, pc))
		return 0;
	if (!at)
		return !jvm__read(&code, sizeof(code), u->pc) && code == CODE_PUSH_RDX;
	if (jvm__read(&thrown, sizeof(thrown), u->regs[UNWIND_REG_R15] + proc->exception_pc) ||
	    thrown != pc)
		return 0;
	return stack__read(u, u->sp + u->rule.cfa_off - 8) || u->value != pc;
}

#define INTERPRETED_WORDS      8
#define CONST_METHOD_BYTES_MAX (64 * 1024 + 512) /* to the last of its bytecodes */
#define INTERPRETED_MOVED_MAX  32768		 /* bytes that a frame's end is moved by at most */

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

/* Returns the Method. An entry has it in rbx until it is pushed. */
static __always_inline __u64 interpreted__method(const struct unwind_state *u,
						 const __u64 words[INTERPRETED_WORDS])
{
	if (u->leaf && u->rbp - u->sp < -8 * INTERPRETED_METHOD)
		return u->regs[UNWIND_REG_RBX];
	return words[INTERPRETED_WORDS + INTERPRETED_METHOD];
}

/* Has rbp been set up for an interpreted frame? An entry has not made its frame yet, stubs in the
 * same buffer never do: there it is the caller's. Then the words are not those of a method, with
 * a place in its bytecodes (native methods have none), which is *@ret_bcp. An entry has the method
 * in rbx, and in r13 first the sender's stack pointer and then that place (generate_fixed_frame).
 */
static __always_inline int interpreted__is_made(const struct unwind_state *u,
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

#define ENTRY_BYTES (8 * INTERPRETED_WORDS) /* of what an entry pushes below rbp */

/* Has an entry set rbp, and not yet pushed all that makes it a frame? */
static __always_inline int interpreted__is_entered(struct unwind_state *u,
						   const struct jvm_proc_rec *proc)
{
	return u->leaf && !u->rbp_lost && u->rbp - u->sp < ENTRY_BYTES &&
	       returns_to_jvm(u, proc, u->rbp + 8);
}

/* The words that end at rbp. */
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

/* An entry is called with the caller's stack pointer in r13: arguments that compiled code has in
 * registers were pushed since. Elsewhere r13 is no address of the stack. */
static __always_inline void interpreted__set_sender(struct unwind_state *u)
{
	__u64 sender = u->regs[UNWIND_REG_R13];

	if (u->leaf && !(sender & 7) && sender - u->sp <= INTERPRETED_MOVED_MAX)
		u->caller_sp = sender;
}

/* As blob__rule, for the interpreter's code. */
__noinline int interpreted__rule(struct unwind_state *u, struct jvm_state *state,
				 const struct jvm_proc_rec *proc, struct jvm_frame *ret)
{
	__u64 words[INTERPRETED_WORDS], bcp = 0;

	if (!u || !state || !proc || !ret)
		return 0;
	ret->kind = JVM_BLOB;
	ret->blob = 0;
	ret->code = proc->interpreter_start;
	ret->at = u->pc - ret->code;
	if (u->rbp_lost || u->rbp < u->sp || u->rbp - u->sp > JVM_FRAME_BYTES_MAX || u->rbp & 7 ||
	    interpreted__read(u, words) || !interpreted__is_made(u, proc, words, &bcp)) {
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
		/* Between the two instructions that make it. */
		if (u->leaf && !stack__read(u, u->sp) && u->value == u->rbp &&
		    returns_to_jvm(u, proc, u->sp + 8)) {
			rule__set(u, UNWIND_REG_RSP, 16, -2);
			interpreted__set_sender(u);
			return 1;
		}
		return jvm__is_gone(u, proc) ? JVM_AGAIN : 1;
	}
	rule__set(u, UNWIND_REG_RBP, 16, -2);
	ret->kind = JVM_INTERPRETED;
	ret->blob = interpreted__method(u, words);
	ret->bcp = bcp;
	/* A compiled method that has called this one ends there, as arguments were moved. */
	u->caller_sp = words[INTERPRETED_WORDS + INTERPRETED_SENDER_SP];
	interpreted__note(u, proc, words);
	return 1;
}

/* Instructions of prologues and epilogues, as their bytes in memory read as a number. */
#define CODE_PUSH_RBP	 0x55
#define CODE_POP_RBP	 0x5d
#define CODE_RET	 0xc3
#define CODE_MOV_RBP_RSP 0xec8b48   /* 48 8b ec */
#define CODE_SUB_RSP_8	 0xec8348   /* 48 83 ec ib */
#define CODE_SUB_RSP_32	 0xec8148   /* 48 81 ec id */
#define CODE_SAVE_RBP_8	 0x246c8948 /* mov [rsp + ib], rbp */
#define CODE_SAVE_RBP_32 0x24ac8948
#define CODE_POLL_8	 0x673b49 /* cmp rsp, [r15 + ib]: the poll at a return */
#define CODE_POLL_32	 0xa73b49
#define CODE_POLL_PAGE	 0x0585	  /* test [rip + id], eax: the poll of JDK 8 at a return */
#define CODE_POLL_LOAD_8 0x578b4d /* mov r10, [r15 + ib]: that of JDK 10 to 15 is ... */
#define CODE_POLL_LOAD	 0x978b4d /* ... mov r10, [r15 + id]; ... */
#define CODE_POLL_IMM	 0xba49	  /* ... or mov r10, imm64, if JDK 8 has its page far away; ... */
#define CODE_POLL_REG	 0xc3028541U /* ... test [r10], eax; and a ret */
#define CODE_BARRIER_8	 0x7f8341    /* cmp dword [r15 + ib], imm: the entry barrier */
#define CODE_BARRIER_32	 0x7f8141
#define CODE_BARRIER_D32 0xbf8141
#define CODE_BARRIER_JE	 0xe80574 /* je over a call: the entry barrier of native wrappers */
#define CODE_LEAVE	 0xc9	  /* a native wrapper's, which then polls, and looks for ... */
#define CODE_POLL_BIT	 0x47f641 /* test byte [r15 + ib], 1 */
#define CODE_PENDING	 0x7f8349 /* ... exceptions: cmp qword [r15 + ib], 0 */
#define CODE_JNE_1	 0x01850f /* over the ret */
#define CODE_POP_RDX	 0x5a
#define CODE_ADD_RSP_8	 0xc48348 /* 48 83 c4 ib */
#define CODE_JMP_R10	 0xe2ff41
#define CODE_JA		 0x870f
#define CODE_JNE	 0x850f
#define CODE3(code)	 ((code)&0xffffff)
#define CODE4(code)	 ((code)&0xffffffff)

/* Where interrupted code is with its frame: before, in and after its making. FRAME_GONE: the return
 * address is popped, too, and is in rdx, as at the end of stubs that throw. */
enum { FRAME_WHOLE, FRAME_NONE, FRAME_PUSHED, FRAME_UNSAVED, FRAME_GONE };

static __always_inline int prologue__place(__u64 before, __u64 at, int otherwise)
{
	__u32 last4 = before >> 32;

	if ((at & 0xff) == CODE_PUSH_RBP)
		return FRAME_NONE;
	if (CODE3(at) == CODE_MOV_RBP_RSP)
		return FRAME_PUSHED;
	if (CODE3(at) == CODE_SUB_RSP_8 || CODE3(at) == CODE_SUB_RSP_32)
		return last4 >> 24 == CODE_PUSH_RBP || last4 >> 8 == CODE_MOV_RBP_RSP ? FRAME_PUSHED
										      : FRAME_NONE;
	if (CODE4(at) == CODE_SAVE_RBP_8 || CODE4(at) == CODE_SAVE_RBP_32)
		return FRAME_UNSAVED;
	if (CODE3(at) == CODE_BARRIER_8 || CODE3(at) == CODE_BARRIER_32 ||
	    CODE3(at) == CODE_BARRIER_D32 || (at & 0xffff) == CODE_JNE)
		return FRAME_WHOLE;
	if (CODE3(at) == CODE_BARRIER_JE || CODE3(before >> 48 | at << 16) == CODE_BARRIER_JE)
		return FRAME_WHOLE;
	/* What the barrier is aligned with. */
	if (CODE3(last4) == CODE_SUB_RSP_8 || CODE3(before >> 8) == CODE_SUB_RSP_32)
		return FRAME_WHOLE;
	return otherwise;
}

/* Is the frame gone, as code is at the poll of a return, or in it (MachEpilogNode::emit, x86_64.ad;
 * LIR_Assembler::return_op)? JDK 16 and later compare rsp. */
static __always_inline int epilogue__polls(__u64 before, __u64 at)
{
	if ((at & 0xffff) == CODE_POLL_PAGE && (at >> 48 & 0xff) == CODE_RET)
		return 1;
	if (CODE4(at) == CODE_POLL_REG)
		return 1;
	return before >> 56 == CODE_POP_RBP &&
	       (CODE3(at) == CODE_POLL_LOAD || CODE3(at) == CODE_POLL_LOAD_8 ||
		(at & 0xffff) == CODE_POLL_IMM);
}

static __always_inline int epilogue__place(__u64 before, __u64 at)
{
	if ((at & 0xff) == CODE_POP_RBP)
		return FRAME_PUSHED;
	if ((at & 0xff) == CODE_RET || CODE3(at) == CODE_POLL_8 || CODE3(at) == CODE_POLL_32)
		return FRAME_NONE;
	if (epilogue__polls(before, at))
		return FRAME_NONE;
	if ((at & 0xffff) == CODE_JA &&
	    (CODE3(before >> 32) == CODE_POLL_8 || CODE3(before >> 8) == CODE_POLL_32))
		return FRAME_NONE;
	if (CODE3(at) == CODE_POLL_BIT && before >> 56 == CODE_LEAVE)
		return FRAME_NONE;
	if (CODE3(before >> 24) == CODE_POLL_BIT && (before >> 16 & 0xff) == CODE_LEAVE)
		return FRAME_NONE;
	if (CODE3(at) == CODE_PENDING && CODE3(at >> 40) == CODE_JNE_1)
		return FRAME_NONE;
	if (CODE3(at) == CODE_JNE_1 && (at >> 48 & 0xff) == CODE_RET)
		return FRAME_NONE;
	if ((at & 0xff) == CODE_POP_RDX && CODE3(before >> 32) == CODE_ADD_RSP_8)
		return FRAME_NONE; /* an exception blob */
	if ((at & 0xff) == CODE_POP_RDX || CODE3(at) == CODE_JMP_R10)
		return before >> 56 == CODE_POP_RBP   ? FRAME_NONE
		       : before >> 56 == CODE_POP_RDX ? FRAME_GONE
						      : FRAME_WHOLE;
	return FRAME_WHOLE;
}

#define PROLOGUE_BYTES 32 /* at most, where HotSpot does not say */

static __always_inline int compiled__place(const struct unwind_state *u, __u64 code,
					   int frame_complete)
{
	__u64 around[2], at = u->pc - code;
	int place;

	if (jvm__read(around, sizeof(around), u->pc - 8))
		return FRAME_WHOLE;
	if (frame_complete >= 0 && at < (__u64)frame_complete)
		return prologue__place(around[0], around[1], FRAME_NONE);
	place = epilogue__place(around[0], around[1]);
	if (place == FRAME_WHOLE && frame_complete < 0 && at < PROLOGUE_BYTES)
		return prologue__place(around[0], around[1], FRAME_WHOLE);
	return place;
}

static __always_inline void compiled__rule(struct unwind_state *u, int place, __u32 words)
{
	if (place == FRAME_NONE)
		rule__set(u, UNWIND_REG_RSP, 8, UNWIND_WORDS_SAME);
	else if (place == FRAME_PUSHED)
		rule__set(u, UNWIND_REG_RSP, 16, -2);
	else
		rule__set(u, UNWIND_REG_RSP, 8 * words,
			  place == FRAME_UNSAVED ? UNWIND_WORDS_SAME : -2);
}

/* The call in front of a return address: none, one that may lead to the code, one that does. */
enum { CALLED_NOT, CALLED_MAYBE, CALLED_PROVEN };

#define FAR_CALL_BYTES	   13	  /* mov $imm64,%r10; call *%r10 */
#define FAR_CALL_MOV	   0xba49 /* the first two of them */
#define IS_FAR_CALL(bytes) (CODE3((bytes) >> 40) == 0xd2ff41)

/* Where the call before @address leads to, whose last bytes are @before; 0: unknown. */
static __always_inline __u64 jvm__call_target(__u64 address, __u64 before)
{
	__u64 target = 0;
	__u16 mov = 0;

	if (!IS_FAR_CALL(before))
		return call__target(address, before);
	if (jvm__read(&mov, sizeof(mov), address - FAR_CALL_BYTES) || mov != FAR_CALL_MOV ||
	    jvm__read(&target, sizeof(target), address - FAR_CALL_BYTES + sizeof(mov)))
		return 0;
	return target;
}

/* Is the word at @address a return address, and does the call in front of it lead to the blob at
 * @blob? */
__noinline int word__called(struct unwind_state *u, struct jvm_state *state,
			    const struct jvm_proc_rec *proc, __u64 address, __u64 blob)
{
	__u64 pc, target;

	if (!u || !state || !proc || !returns_to_jvm(u, proc, address))
		return CALLED_NOT;
	pc = u->value;
	if (pc == proc->call_stub_return)
		return CALLED_MAYBE; /* it calls by a register */
	if (!code__follows_call(u, pc))
		return CALLED_NOT;
	target = jvm__call_target(pc, u->value);
	return target && blob__at(state, proc, target) == blob ? CALLED_PROVEN : CALLED_MAYBE;
}

/* The evidence of a step to the return address at @address, out of the blob at @blob. */
static __always_inline void step__prove(struct unwind_state *u, struct jvm_state *state,
					const struct jvm_proc_rec *proc, __u64 address, __u64 blob)
{
	if (word__called(u, state, proc, address, blob) != CALLED_PROVEN)
		u->next_evidence = EVIDENCE_INFERRED;
}

#define PUSHED_WORDS_MAX 6

/* What C2 expands in place, as String.compareTo, keeps registers on the stack for a while: the
 * frame is larger then. -1: no, not that. */
static __always_inline int compiled__check_pushed(struct unwind_state *u,
						  const struct jvm_proc_rec *proc, __u64 end)
{
	int i;

	for (i = 0; i < PUSHED_WORDS_MAX; i++)
		if (returns_to_jvm(u, proc, end + 8 * i)) {
			u->rule.cfa_off += 8 * (i + 1);
			return 0;
		}
	return -1;
}

/* Stubs without a frame of their own (slow_subtype_check) push registers, too. */
static __always_inline int stub__check_pushed(struct unwind_state *u,
					      const struct jvm_proc_rec *proc)
{
	int i;

	for (i = 2; i <= PUSHED_WORDS_MAX; i++)
		if (returns_to_jvm(u, proc, u->sp + 8 * i)) {
			rule__set(u, UNWIND_REG_RSP, 8 * (i + 1), UNWIND_WORDS_SAME);
			return 0;
		}
	return -1;
}

/* What Java code returns to is code of the JVM, too. Where the rule finds something else, and
 * another place has that, the frame is about to be made or left in a way not foreseen: stubs do
 * that to throw exceptions. -1: there is none. */
__noinline int compiled__place_again(struct unwind_state *u, const struct jvm_proc_rec *proc,
				     int is_nmethod, __u32 words)
{
	__u64 end;

	if (!u || !proc)
		return 0;
	end = u->sp + u->rule.cfa_off;
	u->note.lasts = returns_to_jvm(u, proc, end - 8);
	if (u->note.lasts)
		return 0;
	if (is_nmethod && !compiled__check_pushed(u, proc, end))
		return 0;
	/* A stub that saves all registers has set rbp long before its frame is whole. */
	if (!is_nmethod && end < u->sp + 8ULL * words)
		end = u->sp + 8ULL * words;
	if (!u->rbp_lost && u->rbp >= u->sp && u->rbp < end && returns_to_jvm(u, proc, u->rbp + 8))
		rule__set(u, UNWIND_REG_RBP, 16, -2);
	else if (returns_to_jvm(u, proc, u->sp))
		rule__set(u, UNWIND_REG_RSP, 8, UNWIND_WORDS_SAME);
	else if (returns_to_jvm(u, proc, u->sp + 8))
		rule__set(u, UNWIND_REG_RSP, 16, -2);
	else
		return is_nmethod ? -1 : stub__check_pushed(u, proc);
	return 0;
}

/* Is @pc in the interpreter, which pushes addresses that it is returned to, or in the call stub? */
static __always_inline int jvm__is_entry(const struct jvm_proc_rec *proc, __u64 pc)
{
	return pc - proc->interpreter_start < proc->interpreter_end - proc->interpreter_start ||
	       pc == proc->call_stub_return;
}

#define LEAF_WORDS_MAX 2 /* that C1 pushes for slow_subtype_check */

#define REGISTERS_N   16
#define CODE_PUSH_RAX 0x50
#define CODE_CALL     0xe8

/* Is the topmost word that of a register, as if it had just been pushed, and another `push` or the
 * call next? */
static __always_inline int leaf__has_pushed(struct unwind_state *u)
{
	int found = 0, i;
	__u16 code = 0;

	if (jvm__read(&code, sizeof(code), u->pc))
		return 0;
	if ((code & 0xff) == 0x41)
		code >>= 8;
	if (((code & 0xf8) != CODE_PUSH_RAX && (code & 0xff) != CODE_CALL) ||
	    stack__read(u, u->sp) || !u->value)
		return 0;
	for (i = 0; i < REGISTERS_N; i++)
		found |= u->regs[i] == u->value;
	return found;
}

/* A method may be interrupted while it has words pushed. Its rule then arrives below the return
 * address, where an earlier call may have left another one. If the call in front of that does not
 * lead to the method, and that of a word further out does, the latter is taken, and inferred. */
static __always_inline void leaf__check(struct unwind_state *u, struct jvm_state *state,
					const struct jvm_proc_rec *proc, __u64 blob)
{
	__u64 end = u->sp + u->rule.cfa_off;
	int i;

	if (!leaf__has_pushed(u) || stack__read(u, end - 8) || jvm__is_entry(proc, u->value))
		return;
	if (word__called(u, state, proc, end - 8, blob) == CALLED_PROVEN)
		return;
	for (i = 0; i < LEAF_WORDS_MAX; i++)
		if (word__called(u, state, proc, end + 8 * i, blob) == CALLED_PROVEN) {
			u->rule.cfa_off += 8 * (i + 1);
			u->next_evidence = EVIDENCE_INFERRED;
			return;
		}
}

/* As compiled__place_again. Where that has found another place, the call in front of the return
 * address has to lead to the blob, or the step is inferred. */
static __always_inline int compiled__check(struct unwind_state *u, struct jvm_state *state,
					   const struct jvm_proc_rec *proc,
					   const struct jvm_frame *frame, __u32 words)
{
	int is_gone = compiled__place_again(u, proc, frame->kind == JVM_NMETHOD, words);
	__u64 base = u->rule.reg == UNWIND_REG_RBP ? u->rbp : u->sp;

	if (!is_gone && !u->note.lasts)
		step__prove(u, state, proc, base + u->rule.cfa_off - 8, frame->blob);
	else if (!is_gone && u->leaf && frame->kind == JVM_NMETHOD)
		leaf__check(u, state, proc, frame->blob);
	return is_gone;
}

/* A virtual thread's frames are put on the stack a few at a time. The outermost of them returns to
 * a stub, the return barrier, which fetches more. Outside of it is what mounted the thread: its
 * ContinuationEntry, then rbp and a return address, the only one in there. */
/* Half of the words of a ContinuationEntry, and what may be between: all functions together have
 * 512 bytes of stack. */
#define ENTRY_PART	 12
#define STUB_FRAME_BYTES 512

__noinline int barrier__rule(struct unwind_state *u, const struct jvm_proc_rec *proc)
{
	__u64 words[ENTRY_PART];
	__u32 i;

	if (!u || !proc || jvm__read(words, sizeof(words), u->sp))
		return 0;
	if (!u->rbp_lost && u->rbp >= u->sp && u->rbp - u->sp <= STUB_FRAME_BYTES &&
	    returns_to_jvm(u, proc, u->rbp + 8)) {
		rule__set(u, UNWIND_REG_RBP, 16, -2);
		u->note.lasts = 1;
		return 1;
	}
	for (i = 1; i < ENTRY_PART; i++)
		if (pc__is_jvm(proc, words[i]))
			goto found;
	if (jvm__read(words, sizeof(words), u->sp + sizeof(words)))
		return 0;
	for (; i < 2 * ENTRY_PART; i++)
		if (pc__is_jvm(proc, words[i - ENTRY_PART]))
			goto found;
	return 0;
found:
	rule__set(u, UNWIND_REG_RSP, 8 * (i + 1), -2);
	return 1;
}

/* What the stub method_entry_barrier pushes before it makes its frame. */
#define BARRIER_COOKIE (~0ULL)

/* Words that a stub may have pushed in front of its return address, and one more. */
#define STUB_WORDS_MAX 24

/* A stub that is interrupted has a frame pointer or has not, and has pushed any registers. The call
 * of this stub at the return address decides. -1: there is none. */
static __always_inline int stub__interrupted(struct unwind_state *u, struct jvm_state *state,
					     const struct jvm_proc_rec *proc, __u64 blob,
					     int has_rbp)
{
	int i;

	if (has_rbp && word__called(u, state, proc, u->rbp + 8, blob) == CALLED_PROVEN) {
		rule__set(u, UNWIND_REG_RBP, 16, -2);
		return 0;
	}
	for (i = 0; i < STUB_WORDS_MAX; i++)
		if (word__called(u, state, proc, u->sp + 8 * i, blob) == CALLED_PROVEN) {
			rule__set(u, UNWIND_REG_RSP, 8 * (i + 1),
				  u->rbp > u->sp + 8 * i ? UNWIND_WORDS_SAME : UNWIND_WORDS_LOST);
			return 0;
		}
	u->next_evidence = EVIDENCE_INFERRED;
	if (word__called(u, state, proc, u->sp, blob)) {
		rule__set(u, UNWIND_REG_RSP, 8, UNWIND_WORDS_SAME);
		return 0;
	}
	if (has_rbp && word__called(u, state, proc, u->rbp + 8, blob)) {
		rule__set(u, UNWIND_REG_RBP, 16, -2);
		return 0;
	}
	u->next_evidence = EVIDENCE_RULE;
	return -1;
}

/* Stubs, adapters and tables of calls: with a frame pointer, or (still) without a frame. 1: there
 * is a rule; JVM_NOTED: the JVM's own code has not called it, or nothing proves that. */
static __always_inline int stub__rule(struct unwind_state *u, struct jvm_state *state,
				      const struct jvm_proc_rec *proc, __u64 blob)
{
	int has_rbp = !u->rbp_lost && u->rbp >= u->sp && u->rbp - u->sp <= JVM_FRAME_BYTES_MAX &&
		      !(u->rbp & 7);

	/* First: registers that it saves may look like what barrier__rule searches. */
	if (has_rbp && !stack__read(u, u->rbp + 8) && u->value == BARRIER_COOKIE) {
		rule__set(u, UNWIND_REG_RBP, 24, -3);
		return 1;
	}
	if (u->leaf)
		return stub__interrupted(u, state, proc, blob, has_rbp) ? JVM_NOTED : 1;
	u->note.lasts = has_rbp && (!proc->call_stub_return || u->pc == proc->call_stub_return);
	if (proc->call_stub_return && u->pc != proc->call_stub_return && barrier__rule(u, proc))
		return 1;
	if (!has_rbp)
		return JVM_NOTED;
	if (proc->call_stub_return && u->pc != proc->call_stub_return &&
	    !returns_to_jvm(u, proc, u->rbp + 8))
		return JVM_NOTED;
	rule__set(u, UNWIND_REG_RBP, 16, -2);
	if (u->pc != proc->call_stub_return &&
	    (stack__read(u, u->rbp + 8) ||
	     (!jvm__is_entry(proc, u->value) && !code__follows_call(u, u->value))))
		u->next_evidence = EVIDENCE_INFERRED;
	return 1;
}

#define CODE_CMP_0 0xf883 /* cmp $0,%reg, and a byte of 0 */
#define CODE_JNE_8 0x75

/* Counts the `pop` instructions at @pc, two at most. *ret_end is where they end. */
static __always_inline int pops__count(__u64 pc, __u64 *ret_end)
{
	__u32 code = 0, has_prefix;
	int n;

	if (jvm__read(&code, sizeof(code), pc) || (code & 0xff) == CODE_POP_RBP)
		code = 0;
	for (n = 0; n < 2; n++) {
		has_prefix = (code & 0xff) == 0x41;
		code >>= 8 * has_prefix;
		if ((code & 0xf8) != 0x58)
			break;
		code >>= 8;
		pc += 1 + has_prefix;
	}
	*ret_end = pc;
	return n;
}

/* Returns where `cmp $0,%reg; jne` at @pc ends. 0: the code is another. */
static __always_inline __u64 check__end(__u64 pc)
{
	__u64 code = 0;

	if (jvm__read(&code, sizeof(code), pc))
		return 0;
	if ((code & 0xff) == 0x41)
		code >>= 8, pc++;
	if ((code & 0xfff8ff) != CODE_CMP_0)
		return 0;
	code >>= 24;
	return (code & 0xff) == CODE_JNE_8 ? pc + 5 : (code & 0xffff) == CODE_JNE ? pc + 9 : 0;
}

/* C1 passes arguments to slow_subtype_check, and both compilers one to fixups of conversions, by
 * pushing them, and pops them behind the call: so much larger is its frame. Copies of arrays have
 * pushed two registers before, and pop these where the check fails (LIR_Assembler::emit_arraycopy).
 * The method may also be interrupted before it pops. In words. */
__noinline int words__pushed(struct unwind_state *u)
{
	__u64 end;
	int n;

	if (!u || (u->n && (u->n > 1 || u->leaf)))
		return 0;
	n = pops__count(u->pc, &end);
	end = n == 2 ? check__end(end) : 0;
	return end ? n + pops__count(end, &end) : n;
}

/* The rule for a pc in the code cache into u->rule. `ret` is what the walker will know. 1; 0: it is
 * no code; JVM_AGAIN, or JVM_NOTED. */
__noinline int blob__rule(struct unwind_state *u, struct jvm_state *state,
			  const struct jvm_proc_rec *proc, struct jvm_frame *ret)
{
	int place = FRAME_WHOLE, words;

	if (!u || !state || !proc || !ret)
		return 0;
	words = blob__look(u, state, proc, ret);
	if (words < 0)
		return 0;
	ret->at = u->pc - ret->code;
	if (!words)
		return stub__rule(u, state, proc, ret->blob);
	if (ret->kind == JVM_NMETHOD && u->n <= 1)
		words += words__pushed(u);
	if (u->leaf)
		place = compiled__place(u, ret->code, blob__frame_complete(state, &proc->offsets));
	if (place == FRAME_GONE && jvm__is_gone(u, proc))
		return JVM_AGAIN;
	compiled__rule(u, place, words);
	if (u->leaf && ret->kind == JVM_BLOB && words == EXCEPTION_WORDS &&
	    exception__is_popped(u, proc, ret->at) && jvm__is_gone(u, proc))
		return JVM_AGAIN;
	if (!compiled__check(u, state, proc, ret, words))
		return 1;
	cache__at(state, u->pc)->pc = 0;
	return ret->kind == JVM_BLOB && jvm__is_gone(u, proc) ? JVM_AGAIN : 1;
}

static __always_inline int any__rule(struct unwind_state *u, struct jvm_state *state,
				     const struct jvm_proc_rec *proc, struct jvm_frame *ret)
{
	__u64 bytes = proc->interpreter_end - proc->interpreter_start;

	return u->pc - proc->interpreter_start < bytes ? interpreted__rule(u, state, proc, ret)
						       : blob__rule(u, state, proc, ret);
}

/* The rule for a frame of the JVM's own code into u->rule. 1; 0: it is none. */
__noinline int jvm__rule(struct unwind_state *u, struct jvm_state *state,
			 const struct jvm_proc_rec *proc)
{
	struct jvm_frame *frame;
	int known;

	if (!u || !state || !proc)
		return 0;
	frame = &state->frame;
	frame->compile_id = 0;
	known = any__rule(u, state, proc, frame);
	if (known == JVM_AGAIN)
		known = any__rule(u, state, proc, frame);
	if (!known)
		return 0;
	frame->at |= u->exact ? JVM_EXACT : 0;
	jvm__note(u, state);
	return known != JVM_NOTED;
}

/* Whose sample it is. */
static __always_inline void jvm_state__begin(struct jvm_state *state, const struct scratch *scratch)
{
	__u32 space = scratch->proc.space;
	const struct jvm_proc_rec *proc = bpf_map_lookup_elem(&jvm_procs, &space);

	state->time_ns = scratch->sample.time_ns;
	state->space = space;
	state->is_known = !!proc;
	if (proc)
		state->proc = *proc;
}

/* As jvm__rule, for what the sample's process is (bpf/tableless.bpf.h). */
__noinline int jvm__tableless(struct unwind_state *u)
{
	const struct scratch *scratch = scratch__get();
	struct jvm_state *state = jvm_state__get();

	if (!u || !scratch || !state)
		return 0;
	if (!u->n || state->time_ns != scratch->sample.time_ns)
		jvm_state__begin(state, scratch);
	if (!state->is_known)
		return 0;
	return jvm__rule(u, state, &state->proc) ? TABLELESS_RULE | TABLELESS_CALLED : 0;
}

#endif
