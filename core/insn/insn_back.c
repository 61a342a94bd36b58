// SPDX-License-Identifier: GPL-2.0-or-later
/* Most flow goes forward, so the code is swept from its last instruction to the first until nothing
 * changes. The state of an instruction only grows: from nothing to a frame, and from a frame
 * relative to another register to one relative to the stack pointer. From there it becomes a
 * conflict if two paths disagree. The registers of a state only become unknown.
 *
 * A call is crossed if the called function is part of the code and is proven to return. A jump to
 * code that has frame descriptions continues with the rule in its description. */
#include "core/insn/insn_back.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/sort.h"
#include "core/base/util.h"
#include "core/elf/cfi.h"

/* Limit of instructions swept in total: the cost of a hostile file. */
#define SWEPT_MAX (64 << 20)

#define DISTANCE_MAX (1 << 29) /* as in core/insn/insn_state.c */

struct described { /* a jump target that has a frame description */
	uint64_t vaddr;
	struct insn_back back;
};

struct backwards {
	const struct insn_steps *steps;
	struct insn_back *list; /* frames by step */
	struct described *described;
	size_t n_described, cap_described;
	size_t next; /* index of the first entry of @described without a rule */
	struct unwind_rule last;
};

static const struct insn_back unknown = { .seen = INSN_BACK_NONE };
static const struct insn_back at_jump = { .seen = INSN_BACK_FOUND,
					  .reg = UNWIND_REG_RSP,
					  .off = INSN_ENTRY_DEPTH };
static const struct insn_back at_return = {
	.seen = INSN_BACK_FOUND, .reg = UNWIND_REG_RSP, .returns = true, .off = INSN_ENTRY_DEPTH
};

/* --- targets with frame descriptions --- */

static int compare_places(const void *a, const void *b)
{
	const struct described *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static int distance_of(short words)
{
	return words == UNWIND_WORDS_SAME   ? 0
	       : words == UNWIND_WORDS_LOST ? INSN_OVERWRITTEN
					    : -8 * words;
}

static struct insn_back from_rule(const struct unwind_rule *rule)
{
	struct insn_back ret = { .seen = INSN_BACK_FOUND, .reg = rule->reg, .off = rule->cfa_off };

	if (rule->kind == UNWIND_PLT)
		return at_jump;
	if (rule->kind != UNWIND_REG ||
	    (rule->reg != UNWIND_REG_RSP && rule->reg != UNWIND_REG_RBP))
		return unknown;
	ret.rbp_at = rule->flags & UNWIND_FP_AT_FP ? INSN_OVERWRITTEN : distance_of(rule->fp_words);
	ret.rbx_at =
		rule->flags & UNWIND_AUX_AT_FP ? INSN_OVERWRITTEN : distance_of(rule->aux_words);
	return ret;
}

/* Receives a row. The rule of the previous row applies to all targets up to @vaddr. */
static int on_row(void *ctx, uint64_t vaddr, const struct unwind_rule *rule)
{
	struct backwards *b = ctx;

	while (b->next < b->n_described && b->described[b->next].vaddr < vaddr)
		b->described[b->next++].back = from_rule(&b->last);
	b->last = *rule;
	return 0;
}

static int find_described(struct backwards *b, const struct elf_file *file,
			  const struct insn_ranges *ranges)
{
	int rc = 0;

	for (size_t i = 0; i < b->steps->n && !rc; i++) {
		const struct insn_step *step = &b->steps->list[i];

		rc = quota__look_at(i);
		if ((step->op != INSN_JUMP && step->op != INSN_BRANCH) ||
		    !insn_ranges__described(ranges, step->target))
			continue;
		if (array__reserve(&b->described, &b->cap_described, b->n_described + 1,
				   sizeof(*b->described)))
			return -ENOMEM;
		b->described[b->n_described++] = (struct described) { .vaddr = step->target };
	}
	if (!rc && b->n_described)
		rc = sort__array(b->described, b->n_described, sizeof(*b->described),
				 compare_places);
	if (!rc && b->n_described)
		rc = cfi__read(file, on_row, b, NULL);
	return rc == -EBADMSG ? 0 : rc;
}

static struct insn_back described_at(const struct backwards *b, uint64_t vaddr)
{
	const struct described key = { .vaddr = vaddr };
	const struct described *found = b->n_described
						? bsearch(&key, b->described, b->n_described,
							  sizeof(*b->described), compare_places)
						: NULL;

	return found ? found->back : unknown;
}

/* --- one instruction backwards --- */

static bool by_stack(const struct insn_back *back)
{
	return back->reg == UNWIND_REG_RSP && !back->deref;
}

/* Undoes a move of the stack pointer by @bytes: before the move, a distance from the stack pointer
 * was greater by @bytes. */
static void move(struct insn_back *back, int32_t bytes)
{
	if (back->reg != UNWIND_REG_RSP)
		return;
	if (back->deref)
		back->at += bytes;
	else
		back->off += bytes;
}

/* Undoes a write of @reg: its value before the instruction is unknown. */
static void overwrite(struct insn_back *back, uint8_t reg)
{
	if (reg == back->reg)
		*back = unknown;
	if (reg == UNWIND_REG_RBP && !back->rbp_at)
		back->rbp_at = INSN_OVERWRITTEN;
	if (reg == UNWIND_REG_RBX && !back->rbx_at)
		back->rbx_at = INSN_OVERWRITTEN;
}

/* Undoes a load of @reg from the word at CFA - @from; 0: an unknown word. */
static void restore(struct insn_back *back, uint8_t reg, int32_t from)
{
	int32_t *at = reg == UNWIND_REG_RBP   ? &back->rbp_at
		      : reg == UNWIND_REG_RBX ? &back->rbx_at
					      : NULL;
	bool was_own = at && !*at;

	overwrite(back, reg);
	if (back->seen && was_own && from > 0)
		*at = from;
}

/* Undoes a store of @reg to the word at CFA - @to; 0: an unknown word. */
static void save(struct insn_back *back, uint8_t reg, int32_t to)
{
	if (back->rbp_at > INSN_OVERWRITTEN && (to ? to == back->rbp_at : reg == UNWIND_REG_RBP))
		back->rbp_at = to && reg == UNWIND_REG_RBP ? 0 : INSN_OVERWRITTEN;
	if (back->rbx_at > INSN_OVERWRITTEN && (to ? to == back->rbx_at : reg == UNWIND_REG_RBX))
		back->rbx_at = to && reg == UNWIND_REG_RBX ? 0 : INSN_OVERWRITTEN;
}

static void undo_store(struct insn_back *back, const struct insn_step *step)
{
	if (back->deref && back->reg == UNWIND_REG_RSP && back->at == step->value) {
		back->deref = false;
		back->reg = step->reg;
	}
	save(back, step->reg, by_stack(back) ? back->off - step->value : 0);
}

static void undo_push(struct insn_back *back, const struct insn_step *step)
{
	if (back->deref && back->reg == UNWIND_REG_RSP && !back->at) {
		back->deref = false;
		back->reg = step->reg;
		if (step->reg == UNWIND_REGS)
			*back = unknown;
		return;
	}
	save(back, step->reg, by_stack(back) ? back->off : 0);
	move(back, -step->value);
}

/* Undoes the instruction rsp = @reg + @value. */
static void undo_load(struct insn_back *back, uint8_t reg, int32_t value)
{
	move(back, value);
	if (back->reg == UNWIND_REG_RSP)
		back->reg = reg;
}

static void undo_pop(struct insn_back *back, const struct insn_step *step)
{
	move(back, step->value);
	restore(back, step->reg, by_stack(back) ? back->off : 0);
}

static void undo_fetch(struct insn_back *back, const struct insn_step *step)
{
	if (step->reg != UNWIND_REG_RSP) {
		restore(back, step->reg, by_stack(back) ? back->off - step->value : 0);
	} else if (by_stack(back)) {
		back->deref = true;
		back->at = step->value;
	} else if (back->reg == UNWIND_REG_RSP) {
		*back = unknown;
	}
}

static void undo_leave(struct insn_back *back)
{
	static const struct insn_step pop = { .reg = UNWIND_REG_RBP, .value = 8 };

	undo_pop(back, &pop);
	if (back->seen)
		undo_load(back, UNWIND_REG_RBP, 0);
}

/* Undoes the instruction @reg = rsp + @value. */
static void undo_copy(struct insn_back *back, uint8_t reg, int32_t value)
{
	bool hangs = back->reg == reg;

	if (hangs)
		back->reg = UNWIND_REGS;
	overwrite(back, reg);
	if (hangs) {
		back->reg = UNWIND_REG_RSP;
		move(back, value);
	}
}

static void undo(struct insn_back *back, const struct insn_step *step)
{
	switch (step->op) {
	case INSN_PUSH:
		undo_push(back, step);
		break;
	case INSN_POP:
		undo_pop(back, step);
		break;
	case INSN_MOVE:
		move(back, step->value);
		break;
	case INSN_SAVE:
		undo_copy(back, UNWIND_REG_RBP, 0);
		break;
	case INSN_COPY:
		undo_copy(back, step->reg, step->value);
		break;
	case INSN_LOAD:
		undo_load(back, UNWIND_REG_RBP, step->value);
		break;
	case INSN_LOAD_FROM:
		undo_load(back, step->reg, step->value);
		break;
	case INSN_LEAVE:
		undo_leave(back);
		break;
	case INSN_STORE:
		undo_store(back, step);
		break;
	case INSN_FETCH:
		undo_fetch(back, step);
		break;
	case INSN_LOSE:
	case INSN_ALIGN:
		overwrite(back, UNWIND_REG_RSP);
		break;
	case INSN_ZERO_RBP:
	case INSN_LOSE_RBP:
		overwrite(back, UNWIND_REG_RBP);
		break;
	case INSN_LOSE_RBX:
		overwrite(back, UNWIND_REG_RBX);
	}
	if (back->seen && back->reg < UNWIND_REG_PC && back->reg != UNWIND_REG_RSP &&
	    back->reg != UNWIND_REG_RBP && back->reg != UNWIND_REG_RBX &&
	    step->writes & 1U << back->reg)
		*back = unknown;
}

/* --- all instructions --- */

/* Returns the state before a jump to the start of a function: the function returns in place of the
 * jump. */
static struct insn_back enter(const struct insn_back *start)
{
	return start->seen == INSN_BACK_FOUND && start->returns ? at_return : at_jump;
}

/* Returns the state at the target of a jump. A jump to another function's start is followed by a
 * return to the caller. */
static struct insn_back target_of(const struct backwards *b, uint64_t target)
{
	const struct insn_step *step = insn_steps__at(b->steps, target);

	if (!step)
		return described_at(b, target);
	return step->entry ? enter(&b->list[step - b->steps->list])
			   : b->list[step - b->steps->list];
}

static struct insn_back next_of(const struct backwards *b, size_t at)
{
	const struct insn_step *step = &b->steps->list[at], *next = step + 1;

	if (at + 1 == b->steps->n || next->vaddr != step->vaddr + step->size)
		return unknown;
	return next->entry && step->op != INSN_PADDING ? enter(&b->list[at + 1]) : b->list[at + 1];
}

static bool is_conserved(uint8_t reg)
{
	return reg == UNWIND_REG_RSP || reg == UNWIND_REG_RBP || reg == UNWIND_REG_RBX ||
	       (reg >= 12 && reg < UNWIND_REG_PC);
}

bool insn_back__returns(const struct insn_back *list, const struct insn_steps *steps,
			uint64_t function)
{
	const struct insn_step *step = function ? insn_steps__at(steps, function) : NULL;
	const struct insn_back *back = step ? &list[step - steps->list] : NULL;

	return back && back->seen == INSN_BACK_FOUND && back->returns && by_stack(back) &&
	       back->off == INSN_ENTRY_DEPTH;
}

static int32_t join(int32_t at, int32_t other)
{
	return at == other ? at : INSN_OVERWRITTEN;
}

/* Merges the state @other of another path into @back. */
static void merge(struct insn_back *back, const struct insn_back *other)
{
	int32_t rbp_at = join(back->rbp_at, other->rbp_at);
	int32_t rbx_at = join(back->rbx_at, other->rbx_at);
	bool returns = back->returns || other->returns;

	if (!other->seen || back->seen == INSN_BACK_CONFLICT)
		return;
	if (!back->seen || other->seen == INSN_BACK_CONFLICT) {
		*back = *other;
		return;
	}
	if (back->reg != other->reg || back->deref != other->deref) {
		if (by_stack(other) || (!by_stack(back) && other->reg < back->reg))
			*back = *other;
	} else if (back->off != other->off || back->at != other->at) {
		*back = (struct insn_back) { .seen = INSN_BACK_CONFLICT };
		return;
	}
	back->rbp_at = rbp_at;
	back->rbx_at = rbx_at;
	back->returns = returns;
}

static bool is_far(int32_t distance)
{
	return distance > DISTANCE_MAX || distance < -DISTANCE_MAX;
}

/* Returns true if a push without a register precedes the jump @at. The first stub of a PLT jumps to
 * the linker with two words above the return address. */
static bool passes_more(const struct insn_steps *steps, size_t at)
{
	return at && steps->list[at - 1].op == INSN_PUSH && steps->list[at - 1].reg == UNWIND_REGS;
}

/* Returns true if the step @at is padding. A compiler may emit padding after a call that does not
 * return, even if the called function does not prove it. */
static bool is_padding(const struct insn_steps *steps, size_t at)
{
	return at < steps->n && steps->list[at].op == INSN_PADDING;
}

static struct insn_back look(const struct backwards *b, size_t at)
{
	const struct insn_step *step = &b->steps->list[at];
	struct insn_back ret = unknown, other;

	switch (step->op) {
	case INSN_RETURN:
		return at_return;
	case INSN_TAIL:
		return passes_more(b->steps, at) ? unknown : at_jump;
	case INSN_JUMP:
		return target_of(b, step->target);
	case INSN_STOP:
	case INSN_SIGNAL:
	case INSN_SWITCH:
		return unknown;
	case INSN_CALL:
		if (!insn_back__returns(b->list, b->steps, step->target) ||
		    is_padding(b->steps, at + 1))
			return unknown;
		ret = next_of(b, at);
		return is_conserved(ret.reg) ? ret : unknown;
	case INSN_BRANCH:
		ret = next_of(b, at);
		other = target_of(b, step->target);
		merge(&ret, &other);
		return ret;
	}
	ret = next_of(b, at);
	if (ret.seen != INSN_BACK_FOUND)
		return ret;
	if (is_far(step->value))
		return unknown;
	undo(&ret, step);
	if (is_far(ret.off) || is_far(ret.at) ||
	    (by_stack(&ret) && (ret.off < INSN_ENTRY_DEPTH || ret.off % 8)))
		return unknown;
	return ret;
}

/* Updates all states once, from the last step to the first. Returns true if one changed. A state is
 * only merged with new data, so that the order of the paths does not matter. */
static bool sweep(struct backwards *b)
{
	bool changed = false;

	for (size_t at = b->steps->n; at-- > 0;) {
		struct insn_back now = look(b, at), *old = &b->list[at];

		if (old->seen) {
			struct insn_back both = *old;

			merge(&both, &now);
			now = both;
		}
		if (!memcmp(old, &now, sizeof(now)))
			continue;
		*old = now;
		changed = true;
	}
	return changed;
}

int insn_back__find(const struct elf_file *file, const struct insn_ranges *ranges,
		    const struct insn_steps *steps, struct insn_back **ret)
{
	struct backwards b = { .steps = steps, .list = calloc(steps->n + 1, sizeof(*b.list)) };
	int rc = b.list ? find_described(&b, file, ranges) : -ENOMEM;
	size_t swept = 0;

	while (!rc && sweep(&b)) {
		swept += steps->n;
		rc = swept > SWEPT_MAX ? -EFBIG : quota__look();
	}
	free(b.described);
	if (rc)
		free(b.list);
	*ret = rc ? NULL : b.list;
	return rc;
}

enum insn_fit insn_back__compare(const struct insn_back *back, const struct insn_state *state)
{
	bool fits;

	if (back->seen == INSN_BACK_CONFLICT)
		return INSN_CONTRADICTS;
	if (!back->seen || state->is_last)
		return INSN_FIT_UNKNOWN;
	if (back->deref) {
		if (back->reg != UNWIND_REG_RSP || !state->aligned || !state->old_depth)
			return INSN_FIT_UNKNOWN;
		fits = state->old_at == back->at && state->old_depth == back->off;
	} else if (back->reg == UNWIND_REG_RSP && !state->lost) {
		fits = state->depth == back->off;
	} else if (back->reg == UNWIND_REG_RBP && state->frame) {
		fits = state->frame == back->off;
	} else {
		return INSN_FIT_UNKNOWN;
	}
	return fits ? INSN_FITS : INSN_CONTRADICTS;
}

static bool same_place(int32_t at, int32_t other)
{
	return at == other || at == INSN_OVERWRITTEN || other == INSN_OVERWRITTEN;
}

bool insn_back__same_registers(const struct insn_back *back, const struct insn_state *state)
{
	return same_place(back->rbp_at, state->rbp_at) && same_place(back->rbx_at, state->rbx_at);
}

bool insn_back__state(const struct insn_back *back, struct insn_state *ret)
{
	if (back->seen != INSN_BACK_FOUND || !by_stack(back))
		return false;
	insn_state__enter(ret);
	ret->depth = back->off;
	ret->rbp_at = back->rbp_at;
	ret->rbx_at = back->rbx_at;
	return true;
}

struct unwind_rule insn_back__rule(const struct insn_back *back)
{
	struct unwind_rule rule = { .kind = back->deref ? UNWIND_DEREF : UNWIND_REG,
				    .reg = back->reg,
				    .cfa_off = back->deref ? back->at : back->off,
				    .cfa_add = back->deref ? back->off : 0,
				    .fp_words = insn_state__words(back->rbp_at),
				    .aux_words = insn_state__words(back->rbx_at) };

	if (back->seen != INSN_BACK_FOUND || back->reg >= UNWIND_REG_PC)
		return (struct unwind_rule) { .kind = UNWIND_NONE };
	return rule;
}
