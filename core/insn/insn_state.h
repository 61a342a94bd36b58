/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_INSN_STATE_H
#define BRAID_INSN_STATE_H

#include "bpf/unwind_rule.h"
#include "core/insn/insn_steps.h"

/* The state before an instruction: the position of the frame, and the places of the caller's rbp
 * and rbx. */

#define INSN_ENTRY_DEPTH 8 /* depth at a function's first instruction: the return address */

struct insn_state {
	int32_t depth;		/* CFA - rsp */
	int32_t frame;		/* CFA - rbp; 0: rbp is no frame pointer */
	int32_t rbp_at, rbx_at; /* CFA - place of the saved value; 0: not saved; INSN_OVERWRITTEN */
	uint8_t link;		/* register that contains the return address; UNWIND_REGS: none */
	uint8_t copy; /* register with a copy of rsp, for the next instructions; UNWIND_REGS: none
		       */
	bool lost;    /* the stack pointer is unknown, or @aligned */
	bool aligned; /* the stack pointer was aligned; an earlier one may be saved */
	bool by_rbp;  /* @old_by_rbp is valid */
	bool is_last; /* no caller: the outermost frame */
	uint8_t seen; /* for the caller's use, as is @group */
	uint32_t group;
	uint32_t call;	    /* 1 + step of the last call whose return leads here; 0: none */
	int32_t copy_depth; /* CFA - value of @copy */
	int32_t old_depth;  /* CFA - saved stack pointer; 0: not saved yet */
	int32_t old_at;	    /* address of the saved stack pointer - rsp */
	int32_t old_by_rbp; /* address of the saved stack pointer - rbp */
};

#define INSN_OVERWRITTEN 1 /* special distance: overwritten, and the caller's value is lost */

void insn_state__enter(struct insn_state *state); /* at a function's start */

/* Advances @state over the instruction @step. In the psABI, rbp 0 marks the outermost frame. That
 * does not count in @guarded code (core/insn/insn_rows.c). */
void insn_state__advance(struct insn_state *state, const struct insn_step *step, bool guarded);

/* Returns true if the position of the frame follows from @state, or may follow after later steps.
 */
bool insn_state__is_determined(const struct insn_state *state);

/* Joins the states of two paths to an instruction: clears in both the data that may differ without
 * harm. Returns true if this changes @state. */
bool insn_state__join(struct insn_state *state, struct insn_state *other);

/* Returns a rule's words for a register that is saved at CFA - @at; 0: not saved; INSN_OVERWRITTEN.
 */
short insn_state__words(int32_t at);

/* Returns the rule of @state; UNWIND_NONE: unknown. */
struct unwind_rule insn_state__rule(const struct insn_state *state);

#endif
