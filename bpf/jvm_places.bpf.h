/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_JVM_PLACES_BPF_H
#define BRAID_JVM_PLACES_BPF_H

/* The state of the frame of interrupted compiled code, by the instructions around the pc. */

#include "bpf/jvm_interpreted.bpf.h"

/* Instructions of prologues and epilogues, as their bytes in memory read as a number. */
#define INSN_PUSH_RBP	 0x55
#define INSN_POP_RBP	 0x5d
#define INSN_RET	 0xc3
#define INSN_MOV_RBP_RSP 0xec8b48   /* 48 8b ec */
#define INSN_ADD_RBP_8	 0xc58348   /* 48 83 c5 ib: the last step, with PreserveFramePointer */
#define INSN_ADD_RBP_32	 0xc58148   /* 48 81 c5 id */
#define INSN_SUB_RSP_8	 0xec8348   /* 48 83 ec ib */
#define INSN_SUB_RSP_32	 0xec8148   /* 48 81 ec id */
#define INSN_SAVE_RBP_8	 0x246c8948 /* mov [rsp + ib], rbp */
#define INSN_SAVE_RBP_32 0x24ac8948
#define INSN_POLL_8	 0x673b49 /* cmp rsp, [r15 + ib]: the poll at a return */
#define INSN_POLL_32	 0xa73b49
#define INSN_POLL_PAGE	 0x0585	  /* test [rip + id], eax: the poll of JDK 8 at a return */
#define INSN_POLL_LOAD_8 0x578b4d /* mov r10, [r15 + ib]: the poll of JDK 10 to 15 is ... */
#define INSN_POLL_LOAD	 0x978b4d /* ... mov r10, [r15 + id]; ... */
#define INSN_POLL_IMM	 0xba49	  /* ... or mov r10, imm64, if JDK 8 has its page far away; ... */
#define INSN_POLL_REG	 0xc3028541U /* ... test [r10], eax; and a ret */
#define INSN_BARRIER_8	 0x7f8341    /* cmp dword [r15 + ib], imm: the entry barrier */
#define INSN_BARRIER_32	 0x7f8141
#define INSN_BARRIER_D32 0xbf8141
#define INSN_BARRIER_JE	 0xe80574 /* je over a call: the entry barrier of native wrappers */
#define INSN_LEAVE	 0xc9 /* end of a native wrapper, which then polls, and checks for ... */
#define INSN_POLL_BIT	 0x47f641 /* test byte [r15 + ib], 1 */
#define INSN_PENDING	 0x7f8349 /* ... exceptions: cmp qword [r15 + ib], 0; ... */
#define INSN_PENDING_32	 0x7f8149 /* ... or with an operand of 32 bits */
#define INSN_JNE_1	 0x01850f /* jumps over the ret */
#define INSN_POP_RDX	 0x5a
#define INSN_ADD_RSP_8	 0xc48348 /* 48 83 c4 ib */
#define INSN_JMP_R10	 0xe2ff41
#define INSN_JMP	 0xe9
#define INSN_JMP_REG	 0xe0ff	  /* jmp rax; the register is in the low bits of e0 */
#define INSN_LEA_R10	 0x158d4c /* a poll's slow path: lea r10, [rip + id], ... */
#define INSN_SAVE_R10_8	 0x57894d /* ... mov [r15 + ib], r10 ... */
#define INSN_SAVE_R10	 0x97894d /* ... or mov [r15 + id], r10; and a jmp */
#define INSN_JA		 0x870f
#define INSN_JB		 0x820f /* jumps over the call of a method with @ReservedStackAccess */
#define INSN_JNE	 0x850f

/* The state of the frame: before, during and after its making. FRAME_LEFT: before the jump at an
 * end of the code, if the word at the stack pointer is a return address. FRAME_POPPED: the return
 * address is popped to rdx, as at the end of stubs that throw. FRAME_NOT: u->pc is now the
 * caller's. */
enum { FRAME_WHOLE, FRAME_NONE, FRAME_PUSHED, FRAME_UNSAVED, FRAME_LEFT, FRAME_POPPED, FRAME_NOT };

/* The machine code around a pc: 16 bytes before it, and 24 bytes from it on. */
enum { INSN_FAR_BEFORE, INSN_NEAR_BEFORE, INSN_AT, INSN_AFTER, INSN_FAR_AFTER, INSN_AROUND_WORDS };

/* Returns true if the code before a `jne` compares the entry barrier's guard. The check of an
 * inline cache, before there is a frame, also has a `jne`. */
static __always_inline int barrier__is_compared(__u64 far_before, __u64 before)
{
	return CODE3(before >> 24) == INSN_BARRIER_8 || CODE3(before) == INSN_BARRIER_32 ||
	       CODE3(far_before >> 40) == INSN_BARRIER_D32;
}

static __always_inline int prologue__place(const __u64 code[INSN_AROUND_WORDS], int otherwise)
{
	__u64 before = code[INSN_NEAR_BEFORE], at = code[INSN_AT];
	__u32 last4 = before >> 32;

	if ((at & 0xff) == INSN_PUSH_RBP)
		return FRAME_NONE;
	if (CODE3(at) == INSN_MOV_RBP_RSP) /* or the last step, with -XX:+PreserveFramePointer */
		return before >> 56 == INSN_PUSH_RBP ? FRAME_PUSHED : FRAME_WHOLE;
	if (CODE3(at) == INSN_SUB_RSP_8 || CODE3(at) == INSN_SUB_RSP_32)
		return last4 >> 24 == INSN_PUSH_RBP || last4 >> 8 == INSN_MOV_RBP_RSP ? FRAME_PUSHED
										      : FRAME_NONE;
	if (CODE3(at) == INSN_ADD_RBP_8 || CODE3(at) == INSN_ADD_RBP_32)
		return FRAME_WHOLE;
	if (CODE4(at) == INSN_SAVE_RBP_8 || CODE4(at) == INSN_SAVE_RBP_32)
		return FRAME_UNSAVED;
	if (CODE3(at) == INSN_BARRIER_8 || CODE3(at) == INSN_BARRIER_32 ||
	    CODE3(at) == INSN_BARRIER_D32)
		return FRAME_WHOLE;
	if ((at & 0xffff) == INSN_JNE)
		return barrier__is_compared(code[INSN_FAR_BEFORE], before) ? FRAME_WHOLE
									   : otherwise;
	if (CODE3(at) == INSN_BARRIER_JE || CODE3(before >> 48 | at << 16) == INSN_BARRIER_JE)
		return FRAME_WHOLE;
	/* The padding that aligns the barrier. */
	if (CODE3(last4) == INSN_SUB_RSP_8 || CODE3(before >> 8) == INSN_SUB_RSP_32)
		return FRAME_WHOLE;
	return otherwise;
}

/* Returns true if the frame is gone, as at or in the poll of a return (MachEpilogNode::emit,
 * x86_64.ad; LIR_Assembler::return_op). JDK 16 and later compare rsp. */
static __always_inline int epilogue__polls(__u64 before, __u64 at)
{
	if ((at & 0xffff) == INSN_POLL_PAGE && (at >> 48 & 0xff) == INSN_RET)
		return 1;
	if (CODE4(at) == INSN_POLL_REG)
		return 1;
	return before >> 56 == INSN_POP_RBP &&
	       (CODE3(at) == INSN_POLL_LOAD || CODE3(at) == INSN_POLL_LOAD_8 ||
		(at & 0xffff) == INSN_POLL_IMM);
}

/* Returns true if the instruction saves r10 in the thread, and a `jmp` follows. */
static __always_inline int r10__is_saved(__u64 at)
{
	return (CODE3(at) == INSN_SAVE_R10 && at >> 56 == INSN_JMP) ||
	       (CODE3(at) == INSN_SAVE_R10_8 && (at >> 32 & 0xff) == INSN_JMP);
}

/* Returns true in the slow path of a poll at a return, where the frame is gone, too. It lies
 * after the method's code (C1SafepointPollStub, C2SafepointPollStub). */
static __always_inline int epilogue__is_slow(const __u64 code[INSN_AROUND_WORDS])
{
	__u64 before = code[INSN_NEAR_BEFORE], at = code[INSN_AT], after = code[INSN_AFTER];

	if (CODE3(at) == INSN_LEA_R10) /* has 7 bytes */
		return r10__is_saved(at >> 56 | after << 8);
	if ((at & 0xffff) == INSN_POLL_IMM) /* has 10 bytes */
		return r10__is_saved(after >> 16 | code[INSN_FAR_AFTER] << 48);
	if ((at & 0xff) == INSN_JMP)
		return CODE3(before >> 8) == INSN_SAVE_R10 ||
		       CODE3(before >> 32) == INSN_SAVE_R10_8;
	return r10__is_saved(at);
}

/* Returns true where a native wrapper checks for exceptions after it has left its frame. */
static __always_inline int epilogue__is_pending(const __u64 code[INSN_AROUND_WORDS])
{
	__u64 at = code[INSN_AT];

	if (CODE3(at) == INSN_PENDING && CODE3(at >> 40) == INSN_JNE_1)
		return 1;
	if (CODE3(at) == INSN_PENDING_32 && !(at >> 32) && CODE3(code[INSN_AFTER]) == INSN_JNE_1)
		return 1;
	return CODE3(at) == INSN_JNE_1 && (at >> 48 & 0xff) == INSN_RET;
}

static __always_inline int insn__is_jump(__u64 at)
{
	return (at & 0xff) == INSN_JMP || (at & 0xf8ff) == INSN_JMP_REG;
}

static __always_inline int epilogue__place(const __u64 code[INSN_AROUND_WORDS])
{
	__u64 before = code[INSN_NEAR_BEFORE], at = code[INSN_AT];

	if ((at & 0xff) == INSN_POP_RBP)
		return FRAME_PUSHED;
	if ((at & 0xff) == INSN_RET || CODE3(at) == INSN_POLL_8 || CODE3(at) == INSN_POLL_32)
		return FRAME_NONE;
	if (epilogue__polls(before, at) || epilogue__is_slow(code) || epilogue__is_pending(code))
		return FRAME_NONE;
	if (((at & 0xffff) == INSN_JA || (at & 0xffff) == INSN_JB) &&
	    (CODE3(before >> 32) == INSN_POLL_8 || CODE3(before >> 8) == INSN_POLL_32))
		return FRAME_NONE;
	if (CODE3(at) == INSN_POLL_BIT && before >> 56 == INSN_LEAVE)
		return FRAME_NONE;
	if (CODE3(before >> 24) == INSN_POLL_BIT && (before >> 16 & 0xff) == INSN_LEAVE)
		return FRAME_NONE;
	if ((at & 0xff) == INSN_POP_RDX && CODE3(before >> 32) == INSN_ADD_RSP_8)
		return FRAME_NONE; /* an exception blob */
	if ((at & 0xff) == INSN_POP_RDX || CODE3(at) == INSN_JMP_R10)
		return before >> 56 == INSN_POP_RBP   ? FRAME_NONE
		       : before >> 56 == INSN_POP_RDX ? FRAME_POPPED
						      : FRAME_WHOLE;
	/* The end of code that has found a callee, or forwards an exception to the caller. */
	return before >> 56 == INSN_POP_RBP && insn__is_jump(at) ? FRAME_LEFT : FRAME_WHOLE;
}

#define INSN_MOV_RBX 0xbb48 /* mov rbx, imm64, and a jmp */
#define STATIC_BYTES 10	    /* bytes of that mov */

/* Moves to the caller if a call of a method that is not compiled has led to a piece after the
 * caller's own code (CompiledStaticCall). No method was entered there; the caller continues at
 * the return address. */
static __always_inline int call__is_static(struct unwind_state *u, const struct jvm_proc_rec *proc,
					   const __u64 code[INSN_AROUND_WORDS])
{
	__u64 start = u->pc, pc;

	if ((code[INSN_AT] & 0xff) == INSN_JMP && code[INSN_FAR_BEFORE] >> 48 == INSN_MOV_RBX)
		start -= STATIC_BYTES;
	else if ((code[INSN_AT] & 0xffff) != INSN_MOV_RBX)
		return 0;
	if (!u->leaf || stack__read(u, u->sp))
		return 0;
	pc = u->value;
	if (!pc__is_jvm(proc, pc) || call__read(u, pc) || call__target(pc, u->value) != start)
		return 0;
	return jvm__is_popped(u, proc, pc, u->sp + 8);
}

#define PROLOGUE_BYTES 32 /* at most, if HotSpot does not define it */

/* Reads the machine code around @pc. At the end of a page, the code after it is left out.
 * Returns 0 or -1. */
static __always_inline int insn__around(__u64 pc, __u64 code[INSN_AROUND_WORDS])
{
	if (!jvm__read(code, 8 * INSN_AROUND_WORDS, pc - 16))
		return 0;
	code[INSN_FAR_BEFORE] = code[INSN_AFTER] = code[INSN_FAR_AFTER] = 0;
	return jvm__read(&code[INSN_NEAR_BEFORE], 16, pc - 8);
}

static __always_inline int compiled__place(struct unwind_state *u, const struct jvm_proc_rec *proc,
					   __u64 start, int frame_complete)
{
	__u64 code[INSN_AROUND_WORDS], at = u->pc - start;
	int place;

	if (insn__around(u->pc, code))
		return FRAME_WHOLE;
	if (call__is_static(u, proc, code))
		return FRAME_NOT;
	if (frame_complete >= 0 && at < (__u64)frame_complete)
		return prologue__place(code, FRAME_NONE);
	place = epilogue__place(code);
	if (place == FRAME_WHOLE && frame_complete < 0 && at < PROLOGUE_BYTES)
		return prologue__place(code, FRAME_WHOLE);
	return place;
}

/* --- the height of the stack in straight code, in words above the return address ---
 *
 * Stubs that save registers make and remove their frame in many steps. Between these steps, the
 * frame's size does not determine the place of the return address. The call before that address
 * does not prove the place either, since a call that the stub has resolved leads elsewhere already.
 *
 * The instructions determine the place: those from the start of the blob up to the pc, or those
 * from the pc up to a return. A jump after `pop rbp` is a return, too. The scan only follows
 * instructions that save and restore registers (RegisterSaver, MacroAssembler::push_CPU_state). */

#define HEIGHT_STEPS_MAX 40  /* instructions; a stub saves all registers with 24 */
#define HEIGHT_HEAD_MAX	 256 /* bytes of these instructions */

#define INSN_ENTER	   0xec8b4855U /* push rbp; mov rbp, rsp */
#define INSN_PUSH_ANY	   0x50
#define INSN_POP_ANY	   0x58
#define INSN_POP_RSP	   0x5c
#define INSN_PUSHF	   0x9c
#define INSN_POPF	   0x9d
#define INSN_MOV_RBP_RSP_2 0xe58948    /* 48 89 e5 */
#define INSN_ADD_RSP_32	   0xc48148    /* 48 81 c4 id */
#define INSN_LEA_RSP_8	   0x24648d48U /* lea rsp, [rsp + ib] */
#define INSN_LEA_RSP_32	   0x24a48d48U /* lea rsp, [rsp + id] */
#define INSN_MOV_RSP	   0x24048948U /* mov [rsp + x], reg, or mov reg, [rsp + x] */
#define INSN_MOV_RSP_BITS  0xff07fdfbU
#define INSN_MOV_LOADS	   0x0200

struct height_insn {
	int bytes;  /* length of the instruction; 0: it is not followed */
	int change; /* bytes by which it moves the stack pointer down */
	int rbp_at; /* bytes from the stack pointer before it to the word of rbp */
	int is_rbp; /* it saves or restores rbp */
};

static __always_inline int code__s8(__u64 code, __u32 at)
{
	return (__s8)(code >> 8 * at);
}

static __always_inline int code__s32(__u64 code, __u32 at)
{
	return (__s32)(code >> 8 * at);
}

/* Decodes instructions that move the stack pointer by a constant. */
static __always_inline struct height_insn insn__adds(__u64 code)
{
	__u32 op = CODE3(code), op4 = CODE4(code);

	if (op == INSN_SUB_RSP_8)
		return (struct height_insn) { .bytes = 4, .change = code__s8(code, 3) };
	if (op == INSN_SUB_RSP_32)
		return (struct height_insn) { .bytes = 7, .change = code__s32(code, 3) };
	if (op == INSN_ADD_RSP_8)
		return (struct height_insn) { .bytes = 4, .change = -code__s8(code, 3) };
	if (op == INSN_ADD_RSP_32)
		return (struct height_insn) { .bytes = 7, .change = -code__s32(code, 3) };
	if (op4 == INSN_LEA_RSP_8)
		return (struct height_insn) { .bytes = 5, .change = -code__s8(code, 4) };
	if (op4 == INSN_LEA_RSP_32)
		return (struct height_insn) { .bytes = 8, .change = -code__s32(code, 4) };
	if (op == INSN_MOV_RBP_RSP || op == INSN_MOV_RBP_RSP_2)
		return (struct height_insn) { .bytes = 3 };
	return (struct height_insn) {};
}

/* Decodes a load or a store of a register in the frame. */
static __always_inline struct height_insn insn__moves(__u64 code)
{
	struct height_insn insn = {};
	__u32 mode = code >> 22 & 3, reg = (code >> 19 & 7) | (code & 4) << 1;
	int is_load = !!(code & INSN_MOV_LOADS);

	if ((code & INSN_MOV_RSP_BITS) != INSN_MOV_RSP || mode == 3 || (is_load && reg == 4))
		return insn;
	insn.bytes = mode == 0 ? 4 : mode == 1 ? 5 : 8;
	insn.rbp_at = mode == 0 ? 0 : mode == 1 ? code__s8(code, 4) : code__s32(code, 4);
	insn.is_rbp = reg == 5;
	return insn;
}

static __always_inline struct height_insn insn__decode(__u64 code)
{
	int has_prefix = (code & 0xff) == 0x41;
	__u32 op = code >> 8 * has_prefix & 0xff;
	struct height_insn insn = { .bytes = 1 + has_prefix, .is_rbp = !has_prefix };

	if ((op & 0xf8) == INSN_PUSH_ANY || op == INSN_PUSHF) {
		insn.change = 8;
		insn.rbp_at = -8;
		insn.is_rbp &= op == INSN_PUSH_RBP;
		return insn;
	}
	if (((op & 0xf8) == INSN_POP_ANY && (has_prefix || op != INSN_POP_RSP)) ||
	    op == INSN_POPF) {
		insn.change = -8;
		insn.is_rbp &= op == INSN_POP_RBP;
		return insn;
	}
	insn = insn__adds(code);
	return insn.bytes ? insn : insn__moves(code);
}

/* Follows one instruction. Returns 1 to end the loop. */
static long height__step(__u32 index __attribute__((unused)), void *ctx)
{
	struct height_scan *scan = *(struct height_scan **)ctx;
	int is_head = !!scan->end, rbp_at;
	struct height_insn insn;
	__u64 code = 0;

	if ((is_head && scan->at >= scan->end) || jvm__read(&code, sizeof(code), scan->at))
		return 1;
	if (!is_head && ((code & 0xff) == INSN_RET || (scan->pops_rbp && insn__is_jump(code)))) {
		scan->has_ended = 1;
		return 1;
	}
	insn = insn__decode(code);
	if (!insn.bytes || insn.change & 7 || (!is_head && insn.change > 0))
		return 1;
	/* The first store saves the caller's rbp, and the last load restores it. */
	rbp_at = scan->height - (insn.rbp_at >> 3);
	if (insn.is_rbp && !(is_head && scan->has_rbp)) {
		scan->has_rbp = 1;
		scan->rbp_at = rbp_at;
	}
	scan->pops_rbp = insn.is_rbp && insn.change < 0;
	scan->height += insn.change >> 3;
	scan->at += insn.bytes;
	return 0;
}

/* Sets the rule for a pc from which @words lie above the return address. */
static __always_inline int height__rule(struct unwind_state *u, const struct jvm_proc_rec *proc,
					const struct height_scan *scan, int words, int base)
{
	if (words < 0 || words > JVM_FRAME_BYTES_MAX / 8 ||
	    !returns_to_jvm(u, proc, u->sp + 8ULL * words))
		return 0;
	rule__set(u, UNWIND_REG_RSP, 8 * (words + 1),
		  scan->has_rbp ? base - scan->rbp_at - 1 : UNWIND_WORDS_SAME);
	return 1;
}

/* Sets the rule for an interrupted blob whose code begins at @start. Returns 1, or 0 if its
 * instructions do not determine the place of the return address. */
__noinline int height__find(struct unwind_state *u, struct jvm_state *state,
			    const struct jvm_proc_rec *proc, __u64 start)
{
	struct height_scan *scan;
	__u32 enter = 0;

	if (!u || !state || !proc)
		return 0;
	scan = &state->height;
	*scan = (struct height_scan) { .at = u->pc };
	bpf_loop(HEIGHT_STEPS_MAX, height__step, &scan, 0);
	if (scan->has_ended)
		return height__rule(u, proc, scan, -scan->height, scan->height);
	/* Blobs that are entered by a jump push their return address first. */
	if (u->pc - start > HEIGHT_HEAD_MAX || jvm__read(&enter, sizeof(enter), start) ||
	    enter != INSN_ENTER)
		return 0;
	*scan = (struct height_scan) { .at = start, .end = u->pc };
	bpf_loop(HEIGHT_STEPS_MAX, height__step, &scan, 0);
	return scan->at == u->pc ? height__rule(u, proc, scan, scan->height, 0) : 0;
}

#endif
