// SPDX-License-Identifier: GPL-2.0-or-later
/* Functions move the stack pointer by constants, with one exception. Functions that need it aligned
 * save the old one, first in a register, then in a word of the new stack: mov %rsp,%rax; sub
 * $64,%rsp; and $-32,%rsp; mov %rax,56(%rsp) ... mov 56(%rsp),%rsp (x264's x86inc.asm). They may
 * also point rbp at that word (libjpeg-turbo's jsimdext.inc). */
#include "core/insn/insn_state.h"

/* Limit of distances, in bytes. The code is untrusted, and may move the stack pointer by any number
 * any number of times. A larger distance counts as unknown, so that no sum of two distances exceeds
 * 32 bits. */
#define DISTANCE_MAX (1 << 29)

void insn_state__enter(struct insn_state *state)
{
	*state = (struct insn_state) { .depth = INSN_ENTRY_DEPTH,
				       .link = UNWIND_REGS,
				       .copy = UNWIND_REGS };
}

/* Marks a register as overwritten. */
static void overwrite(int32_t *saved_at)
{
	if (!*saved_at)
		*saved_at = INSN_OVERWRITTEN;
}

static int32_t *saved_of(struct insn_state *state, uint8_t reg)
{
	return reg == UNWIND_REG_RBP ? &state->rbp_at : &state->rbx_at;
}

/* Saves @reg at CFA - @depth. While the stack is aligned, @depth is meaningless. */
static void save(struct insn_state *state, uint8_t reg, int32_t depth)
{
	if (reg != UNWIND_REG_RBP && reg != UNWIND_REG_RBX)
		return;
	if (!*saved_of(state, reg))
		*saved_of(state, reg) = state->lost ? INSN_OVERWRITTEN : depth;
}

/* Restores @reg from CFA - @depth, where it may have been saved. */
static void restore(struct insn_state *state, uint8_t reg, int32_t depth)
{
	if (reg == UNWIND_REG_RBP)
		state->frame = state->by_rbp = 0;
	if (reg != UNWIND_REG_RBP && reg != UNWIND_REG_RBX)
		return;
	if (*saved_of(state, reg) == depth && !state->lost)
		*saved_of(state, reg) = 0;
	else
		overwrite(saved_of(state, reg));
}

static void move(struct insn_state *state, int32_t bytes)
{
	state->depth -= bytes;
	state->old_at -= state->old_depth ? bytes : 0;
}

static void lose(struct insn_state *state)
{
	state->lost = true;
	state->aligned = false;
	state->old_depth = state->old_at = 0;
}

static void push(struct insn_state *state, const struct insn_step *step)
{
	move(state, -step->value);
	save(state, step->reg, state->depth);
	if (step->reg == state->link)
		state->link = UNWIND_REGS;
}

static void pop(struct insn_state *state, const struct insn_step *step)
{
	restore(state, step->reg, state->depth);
	if (!state->lost && state->depth == INSN_ENTRY_DEPTH) { /* the return address */
		state->link = step->reg;
		state->is_last |= step->reg == UNWIND_REGS;
	}
	move(state, step->value);
}

/* Handles rsp = rbp + @value. */
static void load(struct insn_state *state, int32_t value)
{
	if (!state->frame && state->by_rbp && state->old_depth) {
		state->old_at = state->old_by_rbp - value;
		return;
	}
	if (!state->frame) {
		lose(state);
		return;
	}
	state->lost = state->aligned = false;
	state->old_depth = state->old_at = 0;
	state->depth = state->frame - value;
}

/* Handles rsp = *(rsp + @at). */
static void load_old(struct insn_state *state, int32_t at)
{
	int32_t depth = state->old_depth;

	if (!state->aligned || !depth || at != state->old_at) {
		lose(state);
		return;
	}
	lose(state);
	state->lost = false;
	state->depth = depth;
}

static void store(struct insn_state *state, const struct insn_step *step)
{
	int32_t at = state->depth - step->value;

	if (!state->lost && state->rbp_at == at) /* the store overwrites the saved register */
		state->rbp_at = INSN_OVERWRITTEN;
	if (!state->lost && state->rbx_at == at)
		state->rbx_at = INSN_OVERWRITTEN;
	if (state->aligned && step->reg == state->copy) {
		state->old_depth = state->copy_depth;
		state->old_at = step->value;
		state->by_rbp = false;
	} else if (state->aligned && state->old_depth && state->old_at == step->value) {
		state->old_depth = state->old_at = 0;
	} else if (at > 0) {
		save(state, step->reg, at);
	}
}

/* Handles rbp = rsp. */
static void point(struct insn_state *state)
{
	overwrite(&state->rbp_at);
	state->frame = state->lost ? 0 : state->depth;
	state->by_rbp = state->aligned && state->old_depth;
	state->old_by_rbp = state->by_rbp ? state->old_at : 0;
}

static void forget_rbp(struct insn_state *state)
{
	overwrite(&state->rbp_at);
	state->frame = state->old_by_rbp = 0;
	state->by_rbp = false;
}

static void forget_copy(struct insn_state *state)
{
	state->copy = UNWIND_REGS;
	state->copy_depth = 0;
}

/* Handles @reg = rsp + @value. */
static void copy(struct insn_state *state, uint8_t reg, int32_t value)
{
	state->copy = state->lost ? UNWIND_REGS : reg;
	state->copy_depth = state->lost ? 0 : state->depth - value;
	if (reg == UNWIND_REG_RBX)
		overwrite(&state->rbx_at);
}

/* Returns true for a step that changes no register except rsp, or that makes the copy. */
static bool keeps_copy(const struct insn_step *step)
{
	return step->op == INSN_COPY || step->op == INSN_PUSH || step->op == INSN_MOVE ||
	       step->op == INSN_ALIGN || step->op == INSN_STORE || step->op == INSN_PADDING;
}

static bool is_far(int32_t distance)
{
	return distance > DISTANCE_MAX || distance < -DISTANCE_MAX;
}

static void lose_all(struct insn_state *state)
{
	lose(state);
	state->depth = 0;
	forget_rbp(state);
	forget_copy(state);
	overwrite(&state->rbx_at);
}

static void apply(struct insn_state *state, const struct insn_step *step, bool guarded)
{
	static const struct insn_step rbp = { .reg = UNWIND_REG_RBP, .value = 8 };

	switch (step->op) {
	case INSN_PUSH:
		push(state, step);
		break;
	case INSN_POP:
		pop(state, step);
		break;
	case INSN_MOVE:
		move(state, step->value);
		break;
	case INSN_SAVE:
		point(state);
		break;
	case INSN_LOAD:
		load(state, step->value);
		break;
	case INSN_LEAVE:
		load(state, 0);
		pop(state, &rbp);
		break;
	case INSN_ALIGN:
		lose(state);
		state->aligned = true;
		break;
	case INSN_LOAD_FROM:
	case INSN_LOSE:
		lose(state);
		break;
	case INSN_ZERO_RBP:
		state->is_last |= !guarded && !state->rbp_at;
		forget_rbp(state);
		break;
	case INSN_LOSE_RBP:
		forget_rbp(state);
		break;
	case INSN_LOSE_RBX:
		overwrite(&state->rbx_at);
		break;
	case INSN_COPY:
		copy(state, step->reg, step->value);
		break;
	case INSN_STORE:
		store(state, step);
		break;
	case INSN_FETCH:
		if (step->reg == UNWIND_REG_RSP)
			load_old(state, step->value);
		else
			restore(state, step->reg, state->depth - step->value);
		break;
	}
	if (!keeps_copy(step))
		forget_copy(state);
}

void insn_state__advance(struct insn_state *state, const struct insn_step *step, bool guarded)
{
	bool far = step->op != INSN_BOUND && is_far(step->value); /* a bound is no distance */

	if (!far)
		apply(state, step, guarded);
	if (far || is_far(state->depth) || is_far(state->old_at))
		lose_all(state);
}

bool insn_state__is_determined(const struct insn_state *state)
{
	return !state->lost || state->frame ||
	       (state->aligned && (state->old_depth || state->copy != UNWIND_REGS));
}

/* Joins the places of one register. If it is overwritten on one of two paths, its value is unknown
 * after both. Returns true if this changes *@saved_at. */
static bool join(int32_t *saved_at, int32_t *other_saved_at)
{
	bool ret = *other_saved_at == INSN_OVERWRITTEN && *saved_at != INSN_OVERWRITTEN;

	if (*saved_at == INSN_OVERWRITTEN || *other_saved_at == INSN_OVERWRITTEN)
		*saved_at = *other_saved_at = INSN_OVERWRITTEN;
	return ret;
}

/* Joins two states. rbp may have been a frame pointer on one of the paths, or just an address. */
bool insn_state__join(struct insn_state *state, struct insn_state *other)
{
	bool ret = join(&state->rbp_at, &other->rbp_at);

	ret |= join(&state->rbx_at, &other->rbx_at);
	if (state->copy != other->copy || state->copy_depth != other->copy_depth) {
		ret |= state->copy != UNWIND_REGS;
		forget_copy(state);
		forget_copy(other);
	}
	if (state->by_rbp != other->by_rbp || state->old_by_rbp != other->old_by_rbp) {
		ret |= state->by_rbp;
		state->by_rbp = other->by_rbp = false;
		state->old_by_rbp = other->old_by_rbp = 0;
	}
	if (state->frame != other->frame && !state->lost) {
		ret |= state->frame != 0;
		state->frame = other->frame = 0;
	}
	return ret;
}

short insn_state__words(int32_t at)
{
	return !at			       ? UNWIND_WORDS_SAME
	       : at <= 8 * 4096 && at % 8 == 0 ? -at / 8
					       : UNWIND_WORDS_LOST;
}

struct unwind_rule insn_state__rule(const struct insn_state *state)
{
	struct unwind_rule rule = { .kind = UNWIND_REG,
				    .reg = UNWIND_REG_RSP,
				    .cfa_off = state->depth,
				    .fp_words = insn_state__words(state->rbp_at),
				    .aux_words = insn_state__words(state->rbx_at) };

	if (state->is_last)
		return (struct unwind_rule) { .kind = UNWIND_END, .reg = UNWIND_REG_RSP };
	if (state->lost && state->frame) {
		rule.reg = UNWIND_REG_RBP;
		rule.cfa_off = state->frame;
	} else if (state->lost && state->aligned && state->old_depth) {
		rule.kind = UNWIND_DEREF;
		rule.cfa_off = state->old_at;
		rule.cfa_add = state->old_depth;
	} else if (state->lost) {
		return (struct unwind_rule) { .kind = UNWIND_NONE };
	} else if (state->link < UNWIND_REGS) {
		rule.kind = UNWIND_LINK;
		rule.cfa_add = state->link;
	}
	return rule;
}
