/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_FLOW_H
#define BRAID_CODE_FLOW_H

#include "core/insn/code_back.h"
#include "core/insn/code_ranges.h"
#include "core/insn/code_state.h"
#include "core/insn/code_steps.h"

/* The state in front of each instruction that control flow reaches from the start of a function. */

enum { CODE_UNSEEN, CODE_SEEN, CODE_CONTRADICTED }; /* struct code_state's `seen` */

struct code_flow {
	const struct elf_file *file;
	struct code_ranges ranges; /* of the steps */
	struct code_steps steps;
	struct code_state *states; /* of each step, before it */
	struct code_back *back;	   /* of each step in guarded flow; else NULL */
	bool guarded; /* the start is not named: only flow that leads to a return is accepted */
	bool certain; /* no call is crossed that is not proven to return */
	bool endless; /* functions that never return are of interest, beyond their calls */
	int failed;   /* -ENOMEM, or as quota__look returns it */
	uint32_t *todo, *changed, *blamed;
	size_t n_todo, n_changed, n_blamed, cap_todo, cap_changed, cap_blamed, followed;
	uint8_t *marks;	 /* of each step, while flow is judged */
	uint8_t *groups; /* of each group of states: is it proven? */
	size_t n_groups, cap_groups;
	bool wrong;    /* the flow contradicts itself or an earlier one */
	uint32_t call; /* 1 + step of the call whose return the contradiction disproves; 0: none */
	bool returned; /* a return was found */
	bool switched; /* a jump of unknown targets was found */
};

/* 0, -ENOMEM, -EFBIG or -EINTR. The caller has set `file`, `ranges`, `steps` and `guarded`, and
 * owns the ranges and the steps. */
int code_flow__init(struct code_flow *flow);
void code_flow__done(struct code_flow *flow); /* idempotent; leaves the steps */

/* Follows all control flow from the step @at, whose state is @state. Returns true if the states of
 * what it reaches are accepted; else nothing has changed. @named: a function is known to start
 * there, so that it need not return. Turns calls that are proven not to return into CODE_STOP. */
bool code_flow__try(struct code_flow *flow, size_t at, const struct code_state *state, bool named);

/* Is the state in front of the step accepted, and the rule that follows from it proven? */
bool code_flow__is_proven(const struct code_flow *flow, size_t at);

bool code_flow__is_accepted(const struct code_flow *flow, const struct code_state *state);

/* Marks what leads to the jump in whose state @state something was found to be proven. */
void code_flow__prove(struct code_flow *flow, const struct code_state *state);

#endif
