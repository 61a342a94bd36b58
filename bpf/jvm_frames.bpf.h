/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_JVM_FRAMES_BPF_H
#define BRAID_JVM_FRAMES_BPF_H

/* Unwinding through HotSpot's machine code.
 *
 * Problem. HotSpot's code has no unwind tables and no frame pointer. The code cache finds the
 * blob that a pc lies in, and a blob has the size of its frames (JDK 8 to 28:
 * src/hotspot/share/code/{codeBlob,nmethod}.hpp, memory/heap.cpp, cpu/x86/frame_x86.hpp). That size
 * is right at calls. A sample interrupts the innermost frame anywhere else: before its frame is
 * made, after it is removed, with words pushed on top, or in a stub without any frame size. A wrong
 * rule finds another return address of Java code on the stack, and the result seems plausible.
 *
 * Principle. If the size of the blob and the instructions at the pc determine a place, a return
 * address of the JVM's code there is enough. A step to any other place usually counts as proven
 * only if a call before the return address leads to the blob (word__called: CALLED_PROVEN).
 * CALLED_MAYBE is a call by a register, or one that leads elsewhere, such as to a stub that then
 * jumped. Steps with no better proof are EVIDENCE_INFERRED. Without a rule from here, the unwinder
 * tries the rules for arbitrary code (unwind__without_rule).
 *
 * The kinds of code, and where their rules come from:
 *
 *   interpreter      interpreted__rule (jvm_interpreted.bpf.h): frame pointer; without a frame,
 *                    the return address at rsp or popped to a register
 *   compiled method  compiled__rule: the instructions around the pc decide between FRAME_NONE,
 *                    FRAME_WHOLE and the other states (jvm_places.bpf.h), then
 *                    compiled__check tries the places to which C1 and C2 may deviate
 *   blob with size   height__find, where the code around the pc is straight; blob__prefer_rbp while
 *                    it saves registers; else as a compiled method
 *   stub             no size. Outer frames: frame pointer. Innermost frame: stub__interrupted
 *                    searches the return address whose call leads to this stub
 *   named blob       innermost frame only: adapters, tables of calls, linkers of method handles and
 *                    the stub that flushes instructions (named__rule, jvm_adapters.bpf.h).
 *                    adapter__rule scans an adapter up to the pc
 *   call stub        the way from native code into Java: frame pointer
 *   return barrier   outermost frame on a virtual thread's mounted stack (barrier__rule)
 *
 * any__rule returns 1 if u->rule is set, and 0 if the pc is not in code of the JVM.
 * JVM_LISTED: the frame is noted for the walker but has no rule. JVM_CUT: no place that the rules
 * allow has a return address of the JVM's code, so the stack ends. JVM_AGAIN: the frame was already
 * left (tail jump, popped frame). The registers now describe the caller, and the rule is searched
 * once more.
 *
 * Tried before: taking the first word on the stack that is a return address into the code cache.
 * Leftovers of earlier calls made wrong callers in stubs (case jvm-type-check), with no sign of it.
 * tests/long/jvm_steps.t steps through all kinds of code and compares each instruction's rule with
 * the true caller (decision 0175). */

#include "bpf/jvm_adapters.bpf.h"
#include "bpf/jvm_places.bpf.h"

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

/* The call instruction before a return address: no call, a call that may lead to the code, or a
 * call that is proven to lead to the code. */
enum { CALLED_NOT, CALLED_MAYBE, CALLED_PROVEN };

#define FAR_CALL_BYTES	   13	  /* mov $imm64,%r10; call *%r10 */
#define FAR_CALL_MOV	   0xba49 /* its first two bytes */
#define IS_FAR_CALL(bytes) (CODE3((bytes) >> 40) == 0xd2ff41)

/* Returns the target of the call before @address, whose last bytes are @before; 0: unknown. */
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

/* Classifies the word at @address: CALLED_NOT if it is not a return address, CALLED_PROVEN if
 * the call before that return address leads to the blob at @blob, else CALLED_MAYBE. */
__noinline int word__called(struct unwind_state *u, struct jvm_state *state,
			    const struct jvm_proc_rec *proc, __u64 address, __u64 blob)
{
	__u64 pc, target;

	if (!u || !state || !proc || !returns_to_jvm(u, proc, address))
		return CALLED_NOT;
	pc = u->value;
	if (pc == proc->call_stub_return)
		return CALLED_MAYBE; /* the call stub calls by a register */
	if (!insn__follows_call(u, pc))
		return CALLED_NOT;
	target = jvm__call_target(pc, u->value);
	return target && blob__at(state, proc, target) == blob ? CALLED_PROVEN : CALLED_MAYBE;
}

/* Returns the target of the call before the return address at @address; 0: unknown. */
__noinline __u64 word__target(struct unwind_state *u, const struct jvm_proc_rec *proc,
			      __u64 address)
{
	__u64 pc;

	if (!u || !proc || !returns_to_jvm(u, proc, address))
		return 0;
	pc = u->value;
	return insn__follows_call(u, pc) ? jvm__call_target(pc, u->value) : 0;
}

/* Sets the evidence of a step to the return address at @address, out of the blob at @blob. */
static __always_inline void step__prove(struct unwind_state *u, struct jvm_state *state,
					const struct jvm_proc_rec *proc, __u64 address, __u64 blob)
{
	if (word__called(u, state, proc, address, blob) != CALLED_PROVEN)
		u->next_evidence = EVIDENCE_INFERRED;
}

#define PUSHED_WORDS_MAX 6

/* Extends the rule for code that C2 expands in place, as String.compareTo. Such code saves
 * registers on the stack for a while, so that the frame is larger then. Returns 0, or -1 if no
 * return address is found. */
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

/* Sets the rule for stubs without their own frame (slow_subtype_check), which push registers,
 * too. Returns as compiled__check_pushed. */
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

/* Checks that the rule leads to code of the JVM, to which all Java code returns. If only another
 * place has such a return address, the rule changes to that place. The frame is then being made
 * or left in an unforeseen way, as by stubs that throw exceptions. Returns 0, or -1 if no place
 * has a return address. */
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

#define LEAF_WORDS_MAX 2 /* words that C1 pushes for slow_subtype_check */

#define REGISTERS_N   16
#define INSN_PUSH_RAX 0x50
#define INSN_CALL     0xe8
#define CALL_BYTES    5

/* Returns true if the topmost word equals a register, as if just pushed, and the next
 * instruction is another `push` or the call. */
static __always_inline int leaf__has_pushed(struct unwind_state *u)
{
	int found = 0, i;
	__u16 code = 0;

	if (jvm__read(&code, sizeof(code), u->pc))
		return 0;
	if ((code & 0xff) == 0x41)
		code >>= 8;
	if (((code & 0xf8) != INSN_PUSH_RAX && (code & 0xff) != INSN_CALL) ||
	    stack__read(u, u->sp) || !u->value)
		return 0;
	for (i = 0; i < REGISTERS_N; i++)
		found |= u->regs[i] == u->value;
	return found;
}

/* Checks the rule of a method that may be interrupted while it has words pushed. Its rule then
 * arrives below the return address, where an earlier call may have left another one. If the call
 * before that one does not lead to the method, a word further out is tried. It is used, as
 * inferred, if the call before it leads to the method. */
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

/* As compiled__place_again. If that function has found another place, the call before the return
 * address must lead to the blob, or the step is inferred. */
static __always_inline int compiled__check(struct unwind_state *u, struct jvm_state *state,
					   const struct jvm_proc_rec *proc,
					   const struct jvm_frame *frame, __u32 words)
{
	int is_popped = compiled__place_again(u, proc, frame->kind == JVM_NMETHOD, words);
	__u64 base = u->rule.reg == UNWIND_REG_RBP ? u->rbp : u->sp;

	if (!is_popped && !u->note.lasts)
		step__prove(u, state, proc, base + u->rule.cfa_off - 8, frame->blob);
	else if (!is_popped && u->leaf && frame->kind == JVM_NMETHOD)
		leaf__check(u, state, proc, frame->blob);
	return is_popped;
}

/* A virtual thread's frames are put on the stack a few at a time. The outermost of them returns
 * to a stub, the return barrier, which fetches more. The frame that mounted the thread lies
 * outside of it: the thread's ContinuationEntry, then rbp and a return address, the only one in
 * it. */
/* ENTRY_HALF_WORDS is half of the words that a ContinuationEntry and data between may have. All
 * functions together have 512 bytes of stack. */
#define ENTRY_HALF_WORDS 12
#define STUB_FRAME_BYTES 512

__noinline int barrier__rule(struct unwind_state *u, const struct jvm_proc_rec *proc)
{
	__u64 words[ENTRY_HALF_WORDS];
	__u32 i;

	if (!u || !proc || jvm__read(words, sizeof(words), u->sp))
		return 0;
	if (!u->rbp_lost && u->rbp >= u->sp && u->rbp - u->sp <= STUB_FRAME_BYTES &&
	    returns_to_jvm(u, proc, u->rbp + 8)) {
		rule__set(u, UNWIND_REG_RBP, 16, -2);
		u->note.lasts = 1;
		return 1;
	}
	for (i = 1; i < ENTRY_HALF_WORDS; i++)
		if (pc__is_jvm(proc, words[i]))
			goto found;
	if (jvm__read(words, sizeof(words), u->sp + sizeof(words)))
		return 0;
	for (; i < 2 * ENTRY_HALF_WORDS; i++)
		if (pc__is_jvm(proc, words[i - ENTRY_HALF_WORDS]))
			goto found;
	return 0;
found:
	rule__set(u, UNWIND_REG_RSP, 8 * (i + 1), -2);
	return 1;
}

/* The word that the stub method_entry_barrier pushes before it makes its frame. */
#define BARRIER_COOKIE (~0ULL)

/* Limit for the words that a stub may have pushed before its return address, and one more. */
#define STUB_WORDS_MAX 24

#define PUSHES_MAX 9 /* counted pushes at the start of a stub */

/* Returns the number of words that the code at @pc pushes before it does anything else. */
static __always_inline int pushes__count(__u64 pc)
{
	__u64 code[2];
	int n, at = 0;

	if (jvm__read(code, sizeof(code), pc))
		return 0;
	for (n = 0; n < PUSHES_MAX; n++) {
		__u64 next = at < 8 ? code[0] >> 8 * at | (at ? code[1] << (64 - 8 * at) : 0)
				    : code[1] >> 8 * (at & 7);
		int has_prefix = (next & 0xff) == 0x41;

		next >>= 8 * has_prefix;
		if ((next & 0xf8) != INSN_PUSH_ANY && (next & 0xff) != INSN_PUSHF)
			break;
		at += 1 + has_prefix;
		if (at > 13)
			break;
	}
	return n;
}

/* As pushes__count, for the code that the call before @address leads to. */
__noinline int pushes__of(struct unwind_state *u, __u64 address)
{
	__u64 target;

	if (!u || call__read(u, address))
		return 0;
	target = jvm__call_target(address, u->value);
	return target ? pushes__count(target) : 0;
}

/* Returns the number of words above the return address if the instruction at the pc determines that
 * number: at a return, and before and during the making of a frame. -1: the pc is elsewhere. */
static __always_inline int stub__edge(const struct unwind_state *u)
{
	__u64 code[2];

	if (jvm__read(code, sizeof(code), u->pc - 8))
		return -1;
	if ((code[1] & 0xff) == INSN_RET || CODE4(code[1]) == INSN_ENTER)
		return 0;
	return CODE3(code[1]) == INSN_MOV_RBP_RSP && code[0] >> 56 == INSN_PUSH_RBP ? 1 : -1;
}

/* Returns true if the word at @address is a return address of the JVM's own functions, which
 * call some stubs. */
static __always_inline int returns_to_native(struct unwind_state *u, const struct jvm_state *state,
					     const struct jvm_proc_rec *proc, __u64 address)
{
	if (stack__read(u, address) || pc__is_jvm(proc, u->value))
		return 0;
	u->seek = u->value;
	return word__is_return_address(u, state->space);
}

#define CALL_STUB_BYTES 128 /* at most, after its call */

#define ENTER_BYTES 4  /* bytes of `push rbp; mov rbp, rsp` */
#define ENTER_MAX   32 /* bytes in which it begins; a stub may check its arguments before */

/* Returns true if the stub at @target makes a frame with a frame pointer. */
static __always_inline int stub__enters(__u64 target)
{
	__u8 code[ENTER_MAX + ENTER_BYTES];
	int found = 0, i;

	if (jvm__read(code, sizeof(code), target))
		return 0;
	for (i = 0; i < ENTER_MAX; i++)
		found |= code[i] == INSN_PUSH_RBP && code[i + 1] == 0x48 && code[i + 2] == 0x8b &&
			 code[i + 3] == 0xec;
	return found;
}

#define STUB_NEAR 8192ULL /* bytes between places of one stub, at most */

/* Calls of the blob lie before the words after rbp and at rsp. Returns true if the call at rsp
 * has led to the pc: to a function within a stub, which begins after the stub, or to a stub
 * without a frame pointer. */
static __always_inline int stub__is_on_top(struct unwind_state *u, struct jvm_state *state,
					   const struct jvm_proc_rec *proc, __u64 blob)
{
	__u64 inner = word__target(u, proc, u->sp), outer = word__target(u, proc, u->rbp + 8);

	if (!inner || inner > u->pc || blob__at(state, proc, inner) != blob)
		return 0;
	return inner > outer || outer > u->pc || !stub__enters(outer);
}

/* Sets the rule for an interrupted stub, which may have a frame pointer, and may have pushed any
 * registers. The call of this stub before the return address decides. Returns 0, or -1 if no
 * return address is found. */
static __always_inline int stub__interrupted(struct unwind_state *u, struct jvm_state *state,
					     const struct jvm_proc_rec *proc, __u64 blob,
					     int has_rbp)
{
	int i = stub__edge(u);

	if (i >= 0 && (returns_to_jvm(u, proc, u->sp + 8 * i) ||
		       returns_to_native(u, state, proc, u->sp + 8 * i))) {
		rule__set(u, UNWIND_REG_RSP, 8 * (i + 1), i ? -2 : UNWIND_WORDS_SAME);
		return 0;
	}
	if (has_rbp && word__called(u, state, proc, u->rbp + 8, blob) == CALLED_PROVEN) {
		if (stub__is_on_top(u, state, proc, blob))
			rule__set(u, UNWIND_REG_RSP, 8, UNWIND_WORDS_SAME);
		else
			rule__set(u, UNWIND_REG_RBP, 16, -2);
		return 0;
	}
	for (i = 0; i < STUB_WORDS_MAX; i++)
		if (word__called(u, state, proc, u->sp + 8 * i, blob) == CALLED_PROVEN) {
			rule__set(u, UNWIND_REG_RSP, 8 * (i + 1),
				  u->rbp > u->sp + 8 * i ? UNWIND_WORDS_SAME : UNWIND_WORDS_LOST);
			/* An earlier call may have left the return address, unless all words
			 * above it are pushed ones. */
			if (i && !stack__read(u, u->sp + 8 * i) && pushes__of(u, u->value) < i)
				u->next_evidence = EVIDENCE_INFERRED;
			return 0;
		}
	u->next_evidence = EVIDENCE_INFERRED;
	if (word__called(u, state, proc, u->sp, blob) ||
	    (!stack__read(u, u->sp) && jvm__is_entry(proc, u->value)) ||
	    returns_to_native(u, state, proc, u->sp)) {
		rule__set(u, UNWIND_REG_RSP, 8, UNWIND_WORDS_SAME);
		return 0;
	}
	if (has_rbp && (word__called(u, state, proc, u->rbp + 8, blob) ||
			returns_to_native(u, state, proc, u->rbp + 8))) {
		rule__set(u, UNWIND_REG_RBP, 16, -2);
		return 0;
	}
	u->next_evidence = EVIDENCE_RULE;
	return -1;
}

/* The end of the stub that forwards an exception, with the return address in rdx: `pop rdx; mov
 * rax, [r15 + 8]; mov qword [r15 + 8], 0; jmp rbx`. */
#define INSN_LOAD_PENDING  0x08478b49U
#define INSN_CLEAR_PENDING 0x0847c749ULL
#define INSN_JMP_RBX	   0xe3ff

static __always_inline int exception__is_forwarded(__u64 pc)
{
	__u64 code[2];

	if (jvm__read(code, sizeof(code), pc - 8))
		return 0;
	return (CODE4(code[1]) == INSN_LOAD_PENDING && code[0] >> 56 == INSN_POP_RDX) ||
	       (code[1] == INSN_CLEAR_PENDING && code[0] >> 32 == INSN_LOAD_PENDING) ||
	       ((code[1] & 0xffff) == INSN_JMP_RBX && code[0] == INSN_CLEAR_PENDING);
}

/* Sets the rule for stubs, adapters and tables of calls, with a frame pointer, or without a
 * frame (yet). Returns 1 if there is a rule, and JVM_AGAIN if u->pc has changed. Returns JVM_LISTED
 * if no return address is found. */
static __always_inline int stub__rule(struct unwind_state *u, struct jvm_state *state,
				      const struct jvm_proc_rec *proc, __u64 blob)
{
	int has_rbp = !u->rbp_lost && u->rbp >= u->sp && u->rbp - u->sp <= JVM_FRAME_BYTES_MAX &&
		      !(u->rbp & 7);
	int outcome;

	/* After the call of the call stub, which has a frame. */
	if (u->leaf && has_rbp && proc->call_stub_return &&
	    u->pc - proc->call_stub_return < CALL_STUB_BYTES &&
	    returns_to_native(u, state, proc, u->rbp + 8) && stub__edge(u) < 0) {
		rule__set(u, UNWIND_REG_RBP, 16, -2);
		return 1;
	}
	/* This check comes first, since saved registers may resemble the return address that
	 * barrier__rule searches. */
	if (has_rbp && !stack__read(u, u->rbp + 8) && u->value == BARRIER_COOKIE) {
		rule__set(u, UNWIND_REG_RBP, 24, -3);
		return 1;
	}
	if (u->leaf && exception__is_forwarded(u->pc) && jvm__step_popped(u, proc))
		return JVM_AGAIN;
	if (u->leaf) {
		outcome = named__rule(u, state, proc);
		if (outcome >= 0)
			return outcome ? outcome : JVM_LISTED;
		if (outcome == NAMED_FLUSH && returns_to_native(u, state, proc, u->sp)) {
			rule__set(u, UNWIND_REG_RSP, 8, UNWIND_WORDS_SAME);
			return 1;
		}
	}
	if (u->leaf)
		return stub__interrupted(u, state, proc, blob, has_rbp) ? JVM_LISTED : 1;
	u->note.lasts = has_rbp && (!proc->call_stub_return || u->pc == proc->call_stub_return);
	/* A function within the stub has called another one. */
	if (has_rbp && u->pc != proc->call_stub_return && !stack__read(u, u->sp) &&
	    u->value - u->pc + STUB_NEAR < 2 * STUB_NEAR && stub__is_on_top(u, state, proc, blob)) {
		rule__set(u, UNWIND_REG_RSP, 8, UNWIND_WORDS_SAME);
		return 1;
	}
	if (proc->call_stub_return && u->pc != proc->call_stub_return && barrier__rule(u, proc))
		return 1;
	if (!has_rbp)
		return JVM_LISTED;
	if (proc->call_stub_return && u->pc != proc->call_stub_return &&
	    !returns_to_jvm(u, proc, u->rbp + 8))
		return JVM_LISTED;
	rule__set(u, UNWIND_REG_RBP, 16, -2);
	if (u->pc != proc->call_stub_return &&
	    (stack__read(u, u->rbp + 8) ||
	     (!jvm__is_entry(proc, u->value) && !insn__follows_call(u, u->value))))
		u->next_evidence = EVIDENCE_INFERRED;
	return 1;
}

/* Prefers a rule by rbp for a stub that saves all registers. Such a stub has set rbp long before
 * its frame is whole. Until then, the word at the future end of the frame may be the return
 * address of another call. */
static __always_inline void blob__prefer_rbp(struct unwind_state *u, struct jvm_state *state,
					     const struct jvm_proc_rec *proc, __u64 blob,
					     __u32 words)
{
	if (u->rbp_lost || u->rbp & 7 || u->rbp < u->sp || u->rbp - u->sp > 8ULL * words)
		return;
	if (word__called(u, state, proc, u->rbp + 8, blob) == CALLED_PROVEN)
		rule__set(u, UNWIND_REG_RBP, 16, -2);
}

#define INSN_CMP_0 0xf883 /* cmp $0,%reg, and a byte of 0 */
#define INSN_JNE_8 0x75

/* Counts the instructions `push` (@op INSN_PUSH_ANY) or `pop` (INSN_POP_ANY) at @pc, two at most.
 * *@ret_end is the address after them. */
static __always_inline int words__count(__u64 pc, __u32 op, __u64 *ret_end)
{
	__u32 code = 0, has_prefix;
	int n;

	if (jvm__read(&code, sizeof(code), pc) || (code & 0xff) == INSN_POP_RBP)
		code = 0;
	for (n = 0; n < 2; n++) {
		has_prefix = (code & 0xff) == 0x41;
		code >>= 8 * has_prefix;
		if ((code & 0xf8) != op)
			break;
		code >>= 8;
		pc += 1 + has_prefix;
	}
	*ret_end = pc;
	return n;
}

/* Counts the `push` instructions at @pc, if a call follows. *@ret_end is the address after the
 * call, or @pc if there is none. */
static __always_inline int arguments__count(__u64 pc, __u64 *ret_end)
{
	__u64 end;
	__u8 code = 0;
	int n = words__count(pc, INSN_PUSH_ANY, &end);

	if (jvm__read(&code, sizeof(code), end) || code != INSN_CALL) {
		*ret_end = pc;
		return 0;
	}
	*ret_end = end + CALL_BYTES;
	return n;
}

/* Returns the end of `cmp $0,%reg; jne` at @pc; 0: other code. */
static __always_inline __u64 check__end(__u64 pc)
{
	__u64 code = 0;

	if (jvm__read(&code, sizeof(code), pc))
		return 0;
	if ((code & 0xff) == 0x41)
		code >>= 8, pc++;
	if ((code & 0xfff8ff) != INSN_CMP_0)
		return 0;
	code >>= 24;
	return (code & 0xff) == INSN_JNE_8 ? pc + 5 : (code & 0xffff) == INSN_JNE ? pc + 9 : 0;
}

/* Returns the number of words by which the frame is larger than its size. C1 pushes arguments
 * for slow_subtype_check, and both compilers push one for fixups of conversions, and pop them
 * after the call. Copies of arrays push two registers before, and pop these where the check
 * fails (LIR_Assembler::emit_arraycopy). The method may also be interrupted before it pops, and
 * between a push and the call. */
__noinline int words__pushed(struct unwind_state *u)
{
	int n, later = 0;
	__u64 pc, end;

	if (!u || (u->n && (u->n > 1 || u->leaf)))
		return 0;
	pc = u->pc;
	if (u->leaf)
		later = arguments__count(pc, &pc);
	n = words__count(pc, INSN_POP_ANY, &end);
	end = n == 2 ? check__end(end) : 0;
	if (end)
		n += words__count(end, INSN_POP_ANY, &end);
	return n > later ? n - later : 0;
}

/* A copy of arrays that checks their types pushes two registers, and then compares the types
 * (C1's emit_arraycopy): `push a; push b; mov b, [b + 8]`, or a. `pop b; pop a` ends that. In
 * between, the copy pushes both in the other order, for a call. */
#define COPY_WORDS	     2
#define COPY_BYTES_MAX	     160
#define INSN_MOV_TYPE	     0x08408b /* mov reg, [reg + 8], if both are register 0 */
#define MOV_BOTH(reg)	     ((reg) << 8 | (reg) << 11)
#define PAIR_POPS	     0x0808 /* from two `push` instructions to two `pop` instructions */
#define PAIR_TURNED(pair)    ((((pair)&0xff) << 8 | (pair) >> 8) & 0xffff)
#define PAIR_IS_PUSHED(pair) (((pair)&0xf8f8) == 0x5050 && ((pair)&0xff) != (pair) >> 8)

struct copy_scan {
	__u64 at, end;
	__u32 pair; /* the two `push` instructions; 0: not found, or their end was found */
};

/* Returns true if the bytes after the pair load the type of a register that the pair has pushed. */
static __always_inline int copy__loads_type(__u32 pair, __u64 code)
{
	__u32 mov = CODE3((code & 0xf0) == 0x40 ? code >> 8 : code);

	return mov == INSN_MOV_TYPE + MOV_BOTH(pair & 7) ||
	       mov == INSN_MOV_TYPE + MOV_BOTH(pair >> 8 & 7);
}

static long copy__scan(__u32 index __attribute__((unused)), void *ctx)
{
	struct copy_scan *scan = ctx;
	__u64 code = 0;
	__u32 pair;

	if (scan->at >= scan->end || jvm__read(&code, sizeof(code), scan->at))
		return 1;
	pair = code & 0xffff;
	if (scan->pair && pair == PAIR_TURNED(scan->pair) + PAIR_POPS)
		scan->pair = 0;
	else if (!scan->pair && PAIR_IS_PUSHED(pair) && copy__loads_type(pair, code >> 16) &&
		 scan->at + 2 <= scan->end)
		scan->pair = pair;
	scan->at++;
	return 0;
}

/* Returns the words that an interrupted method has pushed for such a copy. The read of the stack
 * rules it out for most methods, since the expected place has no return address. */
__noinline int copy__pushed(struct unwind_state *u, const struct jvm_proc_rec *proc)
{
	struct copy_scan scan = {};

	if (!u || !proc || stack__read(u, u->sp + u->rule.cfa_off + 8 * COPY_WORDS - 8) ||
	    !pc__is_returned_to(u, proc, u->value))
		return 0;
	scan.at = u->pc - COPY_BYTES_MAX;
	scan.end = u->pc;
	bpf_loop(COPY_BYTES_MAX, copy__scan, &scan, 0);
	return scan.pair && scan.at == scan.end ? COPY_WORDS : 0;
}

/* Sets u->rule for a pc in the code cache. `ret` is the frame for the walker. Returns 1; 0 if
 * the pc is not in code; JVM_AGAIN, JVM_LISTED or JVM_CUT. */
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
		place = compiled__place(u, proc, ret->code,
					blob__frame_complete(state, &proc->offsets));
	if (place == FRAME_NOT)
		return JVM_AGAIN;
	if (place == FRAME_POPPED && jvm__step_popped(u, proc))
		return JVM_AGAIN;
	if (place == FRAME_LEFT)
		place = returns_to_jvm(u, proc, u->sp) ? FRAME_NONE : FRAME_WHOLE;
	if (u->leaf && ret->kind == JVM_BLOB && height__find(u, state, proc, ret->code))
		return 1;
	compiled__rule(u, place, words);
	if (u->leaf && ret->kind == JVM_NMETHOD && place == FRAME_WHOLE)
		u->rule.cfa_off += 8 * copy__pushed(u, proc);
	if (u->leaf && ret->kind == JVM_BLOB)
		blob__prefer_rbp(u, state, proc, ret->blob, words);
	if (u->leaf && ret->kind == JVM_BLOB && words == EXCEPTION_WORDS &&
	    exception__is_popped(u, proc, ret->at) &&
	    word__called(u, state, proc, u->sp + u->rule.cfa_off - 8, ret->blob) != CALLED_PROVEN &&
	    jvm__step_popped(u, proc))
		return JVM_AGAIN;
	if (!compiled__check(u, state, proc, ret, words))
		return 1;
	cache__at(state, u->pc)->pc = 0;
	if (ret->kind == JVM_BLOB && jvm__step_popped(u, proc))
		return JVM_AGAIN;
	/* The unwinder shows no frame for an outer pc without a call before it. */
	if (u->n && !u->exact && !insn__follows_call(u, u->pc))
		return JVM_LISTED;
	return rule__cut(u);
}

static __always_inline int any__rule(struct unwind_state *u, struct jvm_state *state,
				     const struct jvm_proc_rec *proc, struct jvm_frame *ret)
{
	__u64 bytes = proc->interpreter_end - proc->interpreter_start;

	return u->pc - proc->interpreter_start < bytes ? interpreted__rule(u, state, proc, ret)
						       : blob__rule(u, state, proc, ret);
}

/* Sets u->rule for a frame of the JVM's own code. Returns as a hook (bpf/tableless.bpf.h). */
__noinline int jvm__rule(struct unwind_state *u, struct jvm_state *state,
			 const struct jvm_proc_rec *proc)
{
	struct jvm_frame *frame;
	int outcome;

	if (!u || !state || !proc)
		return 0;
	frame = &state->frame;
	frame->compile_id = 0;
	outcome = any__rule(u, state, proc, frame);
	if (outcome == JVM_AGAIN)
		outcome = any__rule(u, state, proc, frame);
	if (!outcome)
		return 0;
	frame->at |= u->exact ? JVM_EXACT : 0;
	jvm__note(u, state);
	if (outcome == JVM_LISTED)
		return 0;
	return outcome == JVM_CUT ? TABLELESS_CUT : TABLELESS_RULE | TABLELESS_CALLED;
}

/* Begins a sample: looks up the record of its process. */
static __always_inline void jvm_state__begin(struct jvm_state *state, const struct scratch *scratch)
{
	__u32 space = scratch->proc.space;
	const struct jvm_proc_rec *proc = bpf_map_lookup_elem(&jvm_procs, &space);

	state->time_ns = scratch->sample.time_ns;
	state->space = space;
	state->is_valid = !!proc;
	if (proc)
		state->proc = *proc;
}

/* As jvm__rule, for the sample's process (bpf/tableless.bpf.h). */
__noinline int jvm__tableless(struct unwind_state *u)
{
	const struct scratch *scratch = scratch__get();
	struct jvm_state *state = jvm_state__get();

	if (!u || !scratch || !state)
		return 0;
	if (!u->n || state->time_ns != scratch->sample.time_ns)
		jvm_state__begin(state, scratch);
	if (!state->is_valid)
		return 0;
	return jvm__rule(u, state, &state->proc);
}

#endif
