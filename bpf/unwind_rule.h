/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_UNWIND_RULE_H
#define BRAID_UNWIND_RULE_H

#include "bpf/arch/arch.h"

/* Rules for the step from a native frame to its caller. They are shared by the kernel half, which
 * runs them, and the table builder, which compiles them from call frame information.
 *
 * A rule follows two registers of the caller: `fp`, the frame pointer (x86-64: rbp, arm64: x29),
 * and `aux`, the one other register that rules of outer frames need (x86-64: rbx, arm64: the link
 * register, in which a call leaves the return address). */

enum unwind_kind {
	UNWIND_NONE = 0, /* no table covers this pc */
	UNWIND_REG,	 /* CFA = reg + cfa_off; return address at CFA-8 */
	UNWIND_DEREF,	 /* CFA = *(reg + cfa_off) + cfa_add; return address at CFA-8 */
	UNWIND_PLT,	 /* CFA = rsp + cfa_off + ((pc & 15) >= cfa_add ? 8 : 0) */
	UNWIND_SIGNAL,	 /* a signal frame: all registers are in the ucontext at rsp */
	UNWIND_END,	 /* the return address is undefined: outermost frame; CFA as UNWIND_REG */
	UNWIND_LINK,   /* CFA as UNWIND_REG, and the return address is in register cfa_add: glibc's
			  vfork. Only for the innermost frame, because other frames' registers are
			  unknown. */
	UNWIND_SWITCH, /* the caller is on another stack, whose pointer the thread has stored: see
			  below */
	UNWIND_RESUME, /* likewise, but the pointer was saved in this frame */
	UNWIND_LATER, /* no frame description covers the pc, and its machine code is not read yet: a
			 sample that needs the rule reports the pc (REC_LATER) */
	UNWIND_UNSUPPORTED, /* the table covers the pc with a rule that cannot be expressed here */
	UNWIND_POINTER,	    /* no call frame information, but frame pointers: see below */
};

/* Code whose compiler maintains frame pointers has its frame in rbp, except for a few instructions.
 * These flags select frames that need no further proof (bpf/frame_pointer.bpf.h). A frame without
 * proof is inferred. They are the flags of UNWIND_POINTER, and those of code that a process
 * makes. */
#define KEEPS_POINTERS 1 /* most of the code maintains them */
#define KEEPS_CALLERS  2 /* code after a call always has its frame in rbp */
#define KEEPS_LEAVES   4 /* all code between the prologue and the epilogue has it, too */

/* A saved register lies at CFA + 8*words, or with the flag at fp + 8*words. */
#define UNWIND_WORDS_SAME 0	   /* not saved: still in the register */
#define UNWIND_WORDS_LOST (-32768) /* its value is gone */

/* The flag has priority over WORDS_SAME (fp + 0 is a place), and WORDS_LOST over the flag. */
#define UNWIND_FP_AT_FP	 1 /* flags */
#define UNWIND_AUX_AT_FP 2

/* Rules for threads that switch between stacks themselves.
 *
 * UNWIND_SWITCH: p is the word at thread pointer + cfa_off. Then `reg` times, p becomes the word at
 * p + 8*byte, with the bytes of cfa_add from the lowest one on. The last p is the pointer to the
 * other stack, and CFA = pointer + 8 * the highest byte. The return address is at CFA-8, or with
 * UNWIND_PC_FOLLOWS in the word after the one that held the pointer. If a p on the way is 0, there
 * is no caller: the stack ends. With UNWIND_CHAINED such switches nest, and the pointer of the next
 * outer one is at the address in this one's pointer. A pointer must be above the frame by which
 * UNWIND_RESUME left that stack.
 *
 * UNWIND_REG with UNWIND_CHAINED: the code has published its stack pointer for a switch that it has
 * not done yet, or has undone. The pointer of the next outer switch is at rsp.
 *
 * UNWIND_RESUME has two cases. If the word at rsp + cfa_off is 0, the word below it is the pointer.
 * Otherwise it is the address of two words, the bounds of the other stack. The word below it is
 * then the distance of the pointer below the upper bound. The CFA is as above. */
#define UNWIND_HOPS_MAX	  3
#define UNWIND_PC_FOLLOWS 4 /* flags */
#define UNWIND_CHAINED	  8

struct unwind_rule {
	unsigned char kind;
	unsigned char reg;
	unsigned char flags;
	unsigned char pad;
	int cfa_off;
	int cfa_add;
	short fp_words;
	short aux_words;
};
_Static_assert(sizeof(struct unwind_rule) == 16, "four words of a table");

/* A table is one relocatable array of 32-bit words: a first level by page of code, the rules, and
 * the rows. words[page] is the first row whose pc lies in that page (or after it), counted from
 * words[rows_at]; there is one entry more than pages. A row is the pc's offset in its page in the
 * upper 8 bits and the rule's number in the lower 24. It is valid up to the next row. Rule number n
 * is the four words at rules_at + 4*n; number 0 is UNWIND_NONE, number 1 UNWIND_UNSUPPORTED.
 * rules_at is a multiple of 4. */
#define UNWIND_PAGE_BITS  8
#define UNWIND_PAGE_BYTES (1 << UNWIND_PAGE_BITS)
#define UNWIND_RULES_MAX  (1 << 20)
#define UNWIND_RULE_WORDS 4

#define UNWIND_ROW_BITS	     24 /* bits of the rule's number */
#define UNWIND_ROW(at, rule) ((at) << UNWIND_ROW_BITS | (rule))
#define UNWIND_ROW_AT(row)   ((row) >> UNWIND_ROW_BITS)
#define UNWIND_ROW_RULE(row) ((row) & ((1U << UNWIND_ROW_BITS) - 1))

#endif
