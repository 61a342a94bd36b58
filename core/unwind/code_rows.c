// SPDX-License-Identifier: GPL-2.0-or-later
/* Compiled code moves the stack pointer by constants, so where the frame begins is known at each
 * instruction once it is known at one, and at a function's first one it is: 8 above the stack
 * pointer. From there on all that an instruction may lead to is followed. Code that only a table of
 * jumps leads to begins as the jump by it left things, or is a function that nobody calls by name;
 * what is wrong about a guess shows at the next return, where the depth must be 8 again. In between
 * of described functions (`guarded`) all is a guess, and what meets no return is not believed
 * (docs/decisions/0052-assembly-between-compiled-code.md). */
#include "core/unwind/code_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/unwind/code_ends.h"
#include "core/unwind/code_ranges.h"
#include "core/unwind/code_state.h"
#include "core/unwind/code_steps.h"
#include "core/unwind/code_tables.h"

#define SWITCHES_MAX 4 /* of a function, whose states are kept */

/* Instructions that are followed in all: what a hostile file can make us do. */
#define FOLLOWED_MAX (32 << 20)

enum { UNSEEN, SEEN, CONTRADICTED };

/* What was followed from one instruction on: it has led to a return; or only to jumps of which it
 * is not known where they lead, until something is found there. */
enum { OPEN, PROVEN };

struct flow {
	const struct elf_file *file;
	struct code_steps steps;
	struct code_state *states; /* of each step, before it */
	uint32_t *todo, *changed;
	size_t n_todo, n_changed, cap_todo, cap_changed, followed;
	uint8_t *groups; /* of each number */
	size_t n_groups, cap_groups;
	bool guarded;		 /* nothing is believed of which no return is found */
	bool wrong;		 /* something contradicts what was followed last */
	bool returned;		 /* it has led to a return, or to what is proven */
	bool switched;		 /* ... to a jump of the other kind */
	bool full;		 /* out of memory, or stopped */
	int stopped;		 /* as quota__look says it */
	struct code_state entry; /* of a function */
};

/* --- the ways through the code --- */

static void queue(struct flow *flow, size_t at)
{
	if (array__reserve(&flow->todo, &flow->cap_todo, flow->n_todo + 1, sizeof(*flow->todo)))
		flow->full = true;
	else
		flow->todo[flow->n_todo++] = at;
}

static bool is_proven(const struct flow *flow, const struct code_state *state)
{
	return flow->guarded && flow->groups[state->group] == PROVEN;
}

/* Two ways lead to the instruction. */
static void meet(struct flow *flow, size_t at, const struct code_state *state)
{
	struct code_state *old = &flow->states[at], same = *state;
	bool changed = code_state__join(old, &same);

	same.group = old->group;
	flow->returned |= is_proven(flow, old);
	if (memcmp(old, &same, sizeof(same))) {
		flow->wrong = true;
		if (!is_proven(flow, old))
			old->seen = CONTRADICTED;
	} else if (changed) {
		queue(flow, at);
	}
}

static void put(struct flow *flow, size_t at, const struct code_state *state)
{
	struct code_state *old = &flow->states[at];

	if (old->seen == CONTRADICTED)
		return;
	if (old->seen == SEEN) {
		meet(flow, at, state);
		return;
	}
	if (array__reserve(&flow->changed, &flow->cap_changed, flow->n_changed + 1,
			   sizeof(*flow->changed))) {
		flow->full = true;
		return;
	}
	*old = *state;
	old->group = flow->n_groups - 1;
	flow->changed[flow->n_changed++] = at;
	queue(flow, at);
}

/* Another function is entered with the stack as its caller has left it: a tail call. */
static void jump(struct flow *flow, uint64_t target, const struct code_state *state)
{
	const struct code_step *step = code_steps__at(&flow->steps, target);

	if (!step || step->entry)
		flow->wrong |= state->depth != CODE_ENTRY_DEPTH && !state->lost &&
			       !state->is_last && state->link == UNWIND_REGS;
	else
		put(flow, step - flow->steps.list, state);
}

static void jump_by_table(struct flow *flow, size_t at, const struct code_state *state)
{
	const struct code_step *cases[CODE_CASES_MAX];
	size_t n = code_tables__read(flow->file, &flow->steps, at, cases);

	for (size_t i = 0; i < n; i++)
		put(flow, cases[i] - flow->steps.list, state);
}

static bool goes_on(const struct code_step *step)
{
	return step->op != CODE_JUMP && step->op != CODE_TAIL && step->op != CODE_SWITCH &&
	       step->op != CODE_RETURN && step->op != CODE_STOP && step->op != CODE_SIGNAL;
}

static void follow_one(struct flow *flow, size_t at)
{
	const struct code_step *step = &flow->steps.list[at], *next = step + 1;
	struct code_state state = flow->states[at];

	if (step->op == CODE_RETURN || step->op == CODE_TAIL) {
		flow->returned = true;
		flow->wrong |= state.depth != CODE_ENTRY_DEPTH && !state.lost && !state.is_last;
	}
	if (step->op == CODE_JUMP || step->op == CODE_BRANCH)
		jump(flow, step->target, &state);
	if (step->op == CODE_SWITCH && flow->guarded)
		flow->switched = true;
	else if (step->op == CODE_SWITCH)
		jump_by_table(flow, at, &state);
	if (!goes_on(step) || at + 1 == flow->steps.n || next->entry ||
	    next->vaddr != step->vaddr + step->size)
		return;
	code_state__advance(&state, step, flow->guarded);
	if (!code_state__is_known(&state))
		return;
	put(flow, at + 1, &state);
}

/* All that may be executed from `at` on. False: a contradiction was met. */
static bool follow(struct flow *flow, size_t at, const struct code_state *state)
{
	if (array__reserve(&flow->groups, &flow->cap_groups, flow->n_groups + 1,
			   sizeof(*flow->groups))) {
		flow->full = true;
		return false;
	}
	flow->groups[flow->n_groups++] = OPEN;
	flow->wrong = flow->returned = flow->switched = false;
	flow->n_changed = 0;
	put(flow, at, state);
	while (flow->n_todo && flow->followed++ < FOLLOWED_MAX &&
	       !(flow->stopped = quota__look_at(flow->followed)))
		follow_one(flow, flow->todo[--flow->n_todo]);
	flow->wrong |= flow->n_todo > 0;
	flow->full |= flow->stopped != 0;
	flow->n_todo = 0;
	return !flow->wrong;
}

static bool try(struct flow *flow, size_t at, const struct code_state *state)
{
	bool good = follow(flow, at, state) &&
		    (flow->returned || !flow->guarded || (state == &flow->entry && flow->switched));

	for (size_t i = 0; i < flow->n_changed && !good; i++)
		flow->states[flow->changed[i]].seen = UNSEEN;
	if (good && flow->returned)
		flow->groups[flow->n_groups - 1] = PROVEN;
	return good;
}

/* The same with what a jump has left, which may have led here. */
static bool try_switch(struct flow *flow, size_t at, const struct code_state *state)
{
	bool good = try(flow, at, state);

	if (good && flow->returned)
		flow->groups[state->group] = PROVEN;
	return good;
}

/* What nothing leads to by name, in the order of addresses. */
static void follow_rest(struct flow *flow)
{
	const struct code_step *step = flow->steps.list;
	struct code_state switches[SWITCHES_MAX];
	size_t n = 0; /* that were met in the function */
	bool begins = true, found;

	for (size_t at = 0; at < flow->steps.n && !flow->full; at++, step++) {
		if (step->entry)
			n = 0;
		if (!flow->states[at].seen && begins && step->op != CODE_PADDING &&
		    step->op != CODE_STOP) {
			found = !flow->guarded && try(flow, at, &flow->entry);
			for (size_t i = 0; i < min_of(n, (size_t)SWITCHES_MAX) && !found; i++)
				found = try_switch(flow, at, &switches[(n - 1 - i) % SWITCHES_MAX]);
			if (!found && flow->guarded)
				try(flow, at, &flow->entry);
		}
		begins = !goes_on(step) || (begins && step->op == CODE_PADDING);
		if (step->op == CODE_SWITCH && flow->states[at].seen == SEEN)
			switches[n++ % SWITCHES_MAX] = flow->states[at];
	}
}

static void follow_all(struct flow *flow)
{
	for (size_t at = 0; at < flow->steps.n && !flow->full; at++)
		if (!flow->steps.list[at].entry || flow->states[at].seen)
			continue;
		else if (flow->guarded)
			try(flow, at, &flow->entry);
		else
			follow(flow, at, &flow->entry);
	follow_rest(flow);
}

/* --- rows --- */

static struct unwind_rule rule_of(const struct flow *flow, const struct code_step *step,
				  const struct code_state *state)
{
	if (step->op == CODE_SIGNAL)
		return (struct unwind_rule) { .kind = UNWIND_SIGNAL };
	if (state->seen != SEEN || (flow->guarded && !is_proven(flow, state)))
		return (struct unwind_rule) { .kind = UNWIND_NONE };
	return code_state__rule(state);
}

static int put_rows(const struct flow *flow, cfi_row_fn row, void *ctx)
{
	struct unwind_rule last = { .kind = UNWIND_NONE }, rule;
	static const struct unwind_rule none = { .kind = UNWIND_NONE };
	uint64_t end = 0;
	int ret = 0;

	for (size_t at = 0; at < flow->steps.n && !ret; at++) {
		const struct code_step *step = &flow->steps.list[at];

		if (step->vaddr != end && last.kind != UNWIND_NONE) {
			ret = row(ctx, end, &none);
			last = none;
		}
		end = step->vaddr + step->size;
		rule = rule_of(flow, step, &flow->states[at]);
		if (ret || !memcmp(&rule, &last, sizeof(rule)))
			continue;
		ret = row(ctx, step->vaddr, &rule);
		last = rule;
	}
	return ret || last.kind == UNWIND_NONE ? ret : row(ctx, end, &none);
}

int code_rows__read(const struct elf_file *file, cfi_row_fn row, void *ctx)
{
	struct flow flow = { .file = file };
	struct code_ranges ranges;
	int ret = code_ranges__find(file, &ranges);

	code_state__enter(&flow.entry);
	flow.entry.seen = SEEN;
	flow.guarded = !ranges.named;
	if (!ret)
		ret = code_ranges__read(file, &ranges, &flow.steps);
	code_ranges__done(&ranges);
	if (!ret && !flow.steps.n)
		ret = -ENOENT;
	if (!ret)
		ret = code_ends__mark(&flow.steps);
	if (!ret) {
		flow.states = calloc(flow.steps.n, sizeof(*flow.states));
		ret = flow.states ? 0 : -ENOMEM;
	}
	if (!ret) {
		follow_all(&flow);
		ret = flow.stopped ? flow.stopped : flow.full ? -ENOMEM : put_rows(&flow, row, ctx);
	}
	code_steps__done(&flow.steps);
	free(flow.states);
	free(flow.todo);
	free(flow.groups);
	free(flow.changed);
	return ret;
}
