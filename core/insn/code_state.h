/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_STATE_H
#define BRAID_CODE_STATE_H

#include "bpf/unwind_rule.h"
#include "core/insn/code_steps.h"

/* What is known in front of an instruction of where the frame begins, and of the caller's rbp and
 * rbx. */

#define CODE_ENTRY_DEPTH 8 /* of a function's first instruction: the return address */

struct code_state {
	int32_t depth;		/* CFA - rsp */
	int32_t frame;		/* CFA - rbp; 0: rbp is no frame pointer */
	int32_t rbp_at, rbx_at; /* CFA - where they are saved; 0: they are not; CODE_GONE */
	uint8_t link;		/* the register that has the return address; UNWIND_REGS: none */
	uint8_t copy; /* one that has rsp as it was, for the next instructions; the same */
	bool lost;    /* of the stack pointer nothing is known, or this: */
	bool aligned; /* an earlier one is kept ... */
	bool by_rbp;  /* ... and rbp tells where, too */
	bool is_last; /* nobody has called this */
	uint8_t seen; /* for the caller, as is: */
	uint32_t group;
	uint32_t call;	    /* 1 + step of the last call whose return leads here; 0: none */
	int32_t copy_depth; /* CFA - what `copy` has */
	int32_t old_depth;  /* CFA - the earlier stack pointer; 0: it is not kept yet */
	int32_t old_at;	    /* where it is - rsp */
	int32_t old_by_rbp; /* where it is - rbp */
};

#define CODE_GONE \
	1 /* in place of a distance: it has another value, and where its own is nobody knows */

void code_state__enter(struct code_state *state); /* a function */

/* What holds behind the instruction. psABI: rbp 0 marks the deepest frame, which is no matter in
 * code that is `guarded` (core/insn/code_rows.c). */
void code_state__advance(struct code_state *state, const struct code_step *step, bool guarded);

/* Is it known where the frame begins, or may it still turn out? */
bool code_state__is_known(const struct code_state *state);

/* Two ways lead to an instruction: forgets in both what may differ without harm. True: that is
 * new for the first. */
bool code_state__join(struct code_state *state, struct code_state *other);

/* A rule's words for a register that is saved at CFA - @at; 0: the register has it; CODE_GONE. */
short code_state__words(int32_t at);

/* UNWIND_NONE: it is not known. */
struct unwind_rule code_state__rule(const struct code_state *state);

#endif
