/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_INSN_FLOW_H
#define BRAID_INSN_FLOW_H

#include "core/insn/insn_back.h"
#include "core/insn/insn_ranges.h"
#include "core/insn/insn_state.h"
#include "core/insn/insn_steps.h"

/* The state before each instruction that control flow reaches from the start of a function. */

enum { INSN_UNSEEN, INSN_SEEN, INSN_CONTRADICTED }; /* values of @seen in struct insn_state */

struct insn_flow {
	const struct elf_file *file;
	struct insn_ranges ranges; /* ranges of the steps */
	struct insn_steps steps;
	struct insn_state *states; /* state before each step */
	struct insn_back *back;	   /* frames by step in guarded flow; else NULL */
	bool guarded; /* the start is not named: only flow that leads to a return is accepted */
	bool certain; /* no call is crossed unless it is proven to return */
	bool endless; /* functions that never return are followed beyond their calls */
	int failed;   /* -ENOMEM, or the result of quota__look() */
	uint32_t *todo, *changed, *blamed;
	size_t n_todo, n_changed, n_blamed, cap_todo, cap_changed, cap_blamed, followed;
	uint8_t *marks;	 /* marks by step, while flow is judged */
	uint8_t *groups; /* OPEN or PROVEN, by group of states */
	size_t n_groups, cap_groups;
	bool wrong;    /* the flow contradicts itself or an earlier one */
	uint32_t call; /* 1 + step of the call whose return the contradiction disproves; 0: none */
	bool returned; /* a return was found */
	bool switched; /* a jump of unknown targets was found */
};

/* Prepares the flow. The caller must have set @file, @ranges, @steps and @guarded, and owns the
 * ranges and the steps. Returns 0, -ENOMEM, -EFBIG or -EINTR. */
int insn_flow__init(struct insn_flow *flow);
void insn_flow__done(struct insn_flow *flow); /* idempotent; does not free the steps */

/* Follows all control flow from the step @at, whose state is @state. Returns true if the states of
 * the reached steps are accepted; otherwise no state has changed. @named: a function is proven to
 * start at the step @at, so that the function need not return. Changes calls that are proven not to
 * return to INSN_STOP. */
bool insn_flow__try(struct insn_flow *flow, size_t at, const struct insn_state *state, bool named);

/* Returns true if the state before the step is accepted and its rule is proven. */
bool insn_flow__is_proven(const struct insn_flow *flow, size_t at);

bool insn_flow__is_accepted(const struct insn_flow *flow, const struct insn_state *state);

/* Marks as proven the group of a jump's @state, after code at one of its targets was proven. */
void insn_flow__prove(struct insn_flow *flow, const struct insn_state *state);

#endif
