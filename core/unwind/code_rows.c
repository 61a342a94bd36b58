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

#include "core/base/util.h"
#include "core/unwind/code_ends.h"
#include "core/unwind/code_ranges.h"
#include "core/unwind/code_steps.h"
#include "core/unwind/code_tables.h"

#define ENTRY_DEPTH  8 /* the return address */
#define SWITCHES_MAX 4 /* of a function, whose states are kept */

/* Instructions that are followed in all: what a hostile file can make us do. */
#define FOLLOWED_MAX (32 << 20)

#define GONE                                                                                 \
	1 /* in place of a distance: it has another value, and nobody knows where its own is \
	   */

enum { UNSEEN, SEEN, CONTRADICTED };

/* What was followed from one instruction on: it has led to a return; or only to jumps of which it
 * is not known where they lead, until something is found there. */
enum { OPEN, PROVEN };

struct state {
	int32_t depth;		/* CFA - rsp */
	int32_t frame;		/* CFA - rbp; 0: rbp is no frame pointer */
	int32_t rbp_at, rbx_at; /* CFA - where they are saved; 0: they are not; GONE */
	uint8_t link;		/* the register that has the return address; UNWIND_REGS: none */
	uint8_t seen;
	bool lost;    /* of the stack pointer nothing is known */
	bool is_last; /* nobody has called this */
	uint32_t group;
};

struct flow {
	const struct elf_file *file;
	struct code_steps steps;
	struct state *states; /* of each step, before it */
	uint32_t *todo, *changed;
	size_t n_todo, n_changed, cap_todo, cap_changed, followed;
	uint8_t *groups; /* of each number */
	size_t n_groups, cap_groups;
	bool guarded;  /* nothing is believed of which no return is found */
	bool wrong;    /* something contradicts what was followed last */
	bool returned; /* it has led to a return, or to what is proven */
	bool switched; /* ... to a jump of the other kind */
	bool full;     /* out of memory */
};

static const struct state entry_state = { .depth = ENTRY_DEPTH, .link = UNWIND_REGS, .seen = SEEN };

/* --- one instruction --- */

static void push(struct state *state, const struct code_step *step)
{
	state->depth += step->value;
	if (step->reg == UNWIND_REG_RBP && !state->rbp_at)
		state->rbp_at = state->depth;
	if (step->reg == UNWIND_REG_RBX && !state->rbx_at)
		state->rbx_at = state->depth;
	if (step->reg == state->link)
		state->link = UNWIND_REGS;
}

/* Its value is another one from here on. */
static void overwrite(int32_t *saved_at)
{
	if (!*saved_at)
		*saved_at = GONE;
}

/* From `depth`, where it may have been saved. */
static void restore(int32_t *saved_at, int32_t depth)
{
	if (*saved_at == depth)
		*saved_at = 0;
	else
		overwrite(saved_at);
}

static void pop(struct state *state, const struct code_step *step)
{
	if (step->reg == UNWIND_REG_RBP) {
		restore(&state->rbp_at, state->depth);
		state->frame = 0;
	}
	if (step->reg == UNWIND_REG_RBX)
		restore(&state->rbx_at, state->depth);
	if (state->depth == ENTRY_DEPTH) { /* the return address */
		state->link = step->reg;
		state->is_last |= step->reg == UNWIND_REGS;
	}
	state->depth -= step->value;
}

/* rsp = rbp + value */
static void load(struct state *state, int32_t value)
{
	state->lost = !state->frame;
	state->depth = state->frame - value;
}

static int32_t *saved_of(struct state *state, uint8_t reg)
{
	return reg == UNWIND_REG_RBP ? &state->rbp_at : &state->rbx_at;
}

/* What holds behind the instruction. psABI: rbp 0 marks the deepest frame, which is no matter in
 * code that is `guarded`. */
static void advance(struct state *state, const struct code_step *step, bool guarded)
{
	static const struct code_step rbp = { .reg = UNWIND_REG_RBP, .value = 8 };

	switch (step->op) {
	case CODE_PUSH:
		push(state, step);
		break;
	case CODE_POP:
		pop(state, step);
		break;
	case CODE_MOVE:
		state->depth -= step->value;
		break;
	case CODE_SAVE:
		overwrite(&state->rbp_at);
		state->frame = state->lost ? 0 : state->depth;
		break;
	case CODE_LOAD:
		load(state, step->value);
		break;
	case CODE_LEAVE:
		load(state, 0);
		pop(state, &rbp);
		break;
	case CODE_LOSE:
		state->lost = true;
		break;
	case CODE_ZERO_RBP:
		state->is_last |= !guarded && !state->rbp_at;
		overwrite(&state->rbp_at);
		state->frame = 0;
		break;
	case CODE_LOSE_RBP:
		overwrite(&state->rbp_at);
		state->frame = 0;
		break;
	case CODE_LOSE_RBX:
		overwrite(&state->rbx_at);
		break;
	case CODE_STORE:
		if (!*saved_of(state, step->reg) && step->value < state->depth)
			*saved_of(state, step->reg) = state->depth - step->value;
		break;
	case CODE_FETCH:
		restore(saved_of(state, step->reg), state->depth - step->value);
		state->frame = step->reg == UNWIND_REG_RBP ? 0 : state->frame;
		break;
	}
}

/* --- the ways through the code --- */

static void queue(struct flow *flow, size_t at)
{
	if (array__reserve(&flow->todo, &flow->cap_todo, flow->n_todo + 1, sizeof(*flow->todo)))
		flow->full = true;
	else
		flow->todo[flow->n_todo++] = at;
}

static bool is_proven(const struct flow *flow, const struct state *state)
{
	return flow->guarded && flow->groups[state->group] == PROVEN;
}

/* Of a register that is overwritten on one of two ways nothing is known behind them. True: that is
 * new for the first. */
static bool join(int32_t *saved_at, int32_t *other_saved_at)
{
	bool ret = *other_saved_at == GONE && *saved_at != GONE;

	if (*saved_at == GONE || *other_saved_at == GONE)
		*saved_at = *other_saved_at = GONE;
	return ret;
}

/* Two ways lead to the instruction. rbp may have been a frame pointer on one of them, or just hold
 * an address. */
static void meet(struct flow *flow, size_t at, const struct state *state)
{
	struct state *old = &flow->states[at], same = *state;
	bool changed = join(&old->rbp_at, &same.rbp_at);

	changed |= join(&old->rbx_at, &same.rbx_at);
	same.frame = old->frame;
	same.group = old->group;
	flow->returned |= is_proven(flow, old);
	if (memcmp(old, &same, sizeof(same)) || (old->lost && old->frame != state->frame)) {
		flow->wrong = true;
		if (!is_proven(flow, old))
			old->seen = CONTRADICTED;
	} else if (changed || (old->frame && old->frame != state->frame)) {
		old->frame = old->frame == state->frame ? old->frame : 0;
		queue(flow, at);
	}
}

static void put(struct flow *flow, size_t at, const struct state *state)
{
	struct state *old = &flow->states[at];

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
static void jump(struct flow *flow, uint64_t target, const struct state *state)
{
	const struct code_step *step = code_steps__at(&flow->steps, target);

	if (!step || step->entry)
		flow->wrong |= state->depth != ENTRY_DEPTH && !state->lost && !state->is_last &&
			       state->link == UNWIND_REGS;
	else
		put(flow, step - flow->steps.list, state);
}

static void jump_by_table(struct flow *flow, size_t at, const struct state *state)
{
	const struct code_step *cases[CODE_CASES_MAX];
	size_t n = code_tables__read(flow->file, &flow->steps, at, cases);

	for (size_t i = 0; i < n; i++)
		put(flow, cases[i] - flow->steps.list, state);
}

static bool goes_on(const struct code_step *step)
{
	return step->op != CODE_JUMP && step->op != CODE_SWITCH && step->op != CODE_RETURN &&
	       step->op != CODE_STOP && step->op != CODE_SIGNAL;
}

static void follow_one(struct flow *flow, size_t at)
{
	const struct code_step *step = &flow->steps.list[at], *next = step + 1;
	struct state state = flow->states[at];

	if (step->op == CODE_RETURN)
		flow->returned = true;
	if (step->op == CODE_RETURN)
		flow->wrong |= state.depth != ENTRY_DEPTH && !state.lost && !state.is_last;
	if (step->op == CODE_JUMP || step->op == CODE_BRANCH)
		jump(flow, step->target, &state);
	if (step->op == CODE_SWITCH && flow->guarded)
		flow->switched = true;
	else if (step->op == CODE_SWITCH)
		jump_by_table(flow, at, &state);
	if (!goes_on(step) || at + 1 == flow->steps.n || next->entry ||
	    next->vaddr != step->vaddr + step->size)
		return;
	advance(&state, step, flow->guarded);
	if (state.lost && !state.frame)
		return;
	put(flow, at + 1, &state);
}

/* All that may be executed from `at` on. False: a contradiction was met. */
static bool follow(struct flow *flow, size_t at, const struct state *state)
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
	while (flow->n_todo && flow->followed++ < FOLLOWED_MAX)
		follow_one(flow, flow->todo[--flow->n_todo]);
	flow->wrong |= flow->n_todo > 0;
	flow->n_todo = 0;
	return !flow->wrong;
}

static bool try(struct flow *flow, size_t at, const struct state *state)
{
	bool good = follow(flow, at, state) &&
		    (flow->returned || !flow->guarded || (state == &entry_state && flow->switched));

	for (size_t i = 0; i < flow->n_changed && !good; i++)
		flow->states[flow->changed[i]].seen = UNSEEN;
	if (good && flow->returned)
		flow->groups[flow->n_groups - 1] = PROVEN;
	return good;
}

/* The same with what a jump has left, which may have led here. */
static bool try_switch(struct flow *flow, size_t at, const struct state *state)
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
	struct state switches[SWITCHES_MAX];
	size_t n = 0; /* that were met in the function */
	bool begins = true, found;

	for (size_t at = 0; at < flow->steps.n && !flow->full; at++, step++) {
		if (step->entry)
			n = 0;
		if (!flow->states[at].seen && begins && step->op != CODE_PADDING &&
		    step->op != CODE_STOP) {
			found = !flow->guarded && try(flow, at, &entry_state);
			for (size_t i = 0; i < min_of(n, (size_t)SWITCHES_MAX) && !found; i++)
				found = try_switch(flow, at, &switches[(n - 1 - i) % SWITCHES_MAX]);
			if (!found && flow->guarded)
				try(flow, at, &entry_state);
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
			try(flow, at, &entry_state);
		else
			follow(flow, at, &entry_state);
	follow_rest(flow);
}

/* --- rows --- */

static short words_of(int32_t at)
{
	return !at			       ? UNWIND_WORDS_SAME
	       : at <= 8 * 4096 && at % 8 == 0 ? -at / 8
					       : UNWIND_WORDS_LOST;
}

static struct unwind_rule rule_of(const struct flow *flow, const struct code_step *step,
				  const struct state *state)
{
	struct unwind_rule rule = { .kind = UNWIND_REG,
				    .reg = UNWIND_REG_RSP,
				    .cfa_off = state->depth,
				    .rbp_words = words_of(state->rbp_at),
				    .rbx_words = words_of(state->rbx_at) };

	if (step->op == CODE_SIGNAL)
		return (struct unwind_rule) { .kind = UNWIND_SIGNAL };
	if (state->seen != SEEN || (state->lost && !state->frame) ||
	    (flow->guarded && !is_proven(flow, state)))
		return (struct unwind_rule) { .kind = UNWIND_NONE };
	if (state->is_last)
		return (struct unwind_rule) { .kind = UNWIND_END, .reg = UNWIND_REG_RSP };
	if (state->lost) {
		rule.reg = UNWIND_REG_RBP;
		rule.cfa_off = state->frame;
	} else if (state->link < UNWIND_REGS) {
		rule.kind = UNWIND_LINK;
		rule.cfa_add = state->link;
	}
	return rule;
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
		ret = flow.full ? -ENOMEM : put_rows(&flow, row, ctx);
	}
	code_steps__done(&flow.steps);
	free(flow.states);
	free(flow.todo);
	free(flow.groups);
	free(flow.changed);
	return ret;
}
