// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/insn/insn_ends.h"

#include <errno.h>
#include <stdlib.h>

#include "core/base/quota.h"
#include "core/base/util.h"

/* Limit of instructions visited in total: the cost of a hostile file. */
#define LOOKS_MAX (16 << 20)

struct ends {
	struct insn_steps *steps;
	uint32_t *looked; /* last function whose search visited the step, by step */
	uint32_t *todo;
	bool *never; /* true: the function that starts there does not return; by step */
	size_t n_todo, cap_todo, looks;
	uint32_t function;
	bool full;   /* out of memory */
	int stopped; /* result of quota__look() */
};

static void look(struct ends *ends, size_t at)
{
	if (ends->looked[at] == ends->function)
		return;
	if (array__reserve(&ends->todo, &ends->cap_todo, ends->n_todo + 1, sizeof(*ends->todo))) {
		ends->full = true;
		return;
	}
	ends->looked[at] = ends->function;
	ends->todo[ends->n_todo++] = at;
	ends->looks++;
}

/* Returns true if the target of a jump may return. A target in the same function is queued instead,
 * and is searched later. */
static bool jump_returns(struct ends *ends, uint64_t target)
{
	const struct insn_step *step = insn_steps__at(ends->steps, target);

	if (!step)
		return true;
	if (step->entry)
		return !ends->never[step - ends->steps->list];
	look(ends, step - ends->steps->list);
	return false;
}

static bool step_returns(struct ends *ends, size_t at)
{
	const struct insn_step *step = &ends->steps->list[at], *next = step + 1;

	switch (step->op) {
	case INSN_RETURN:
	case INSN_TAIL:
	case INSN_SWITCH:
	case INSN_SIGNAL:
		return true;
	case INSN_STOP:
		return false;
	case INSN_JUMP:
		return jump_returns(ends, step->target);
	case INSN_BRANCH:
		if (jump_returns(ends, step->target))
			return true;
	}
	if (at + 1 == ends->steps->n || next->vaddr != step->vaddr + step->size)
		return true;
	if (next->entry)
		return !ends->never[at + 1];
	look(ends, at + 1);
	return false;
}

static bool returns(struct ends *ends, size_t entry)
{
	bool ret = false;

	ends->function++;
	ends->n_todo = 0;
	look(ends, entry);
	while (ends->n_todo && !ret && !(ends->stopped = quota__look_at(ends->looks)))
		ret = step_returns(ends, ends->todo[--ends->n_todo]) || ends->full ||
		      ends->looks > LOOKS_MAX;
	return ret;
}

static void mark_calls(struct ends *ends)
{
	for (size_t at = 0; at < ends->steps->n; at++) {
		struct insn_step *step = &ends->steps->list[at], *target;

		target = step->op == INSN_CALL ? insn_steps__at(ends->steps, step->target) : NULL;
		if (target && ends->never[target - ends->steps->list])
			step->op = INSN_STOP;
	}
}

/* Finds all functions that do not return. One such function may show that its callers do not return
 * either. */
static void find_all(struct ends *ends)
{
	bool more = true;

	while (more && !ends->full && !ends->stopped && ends->looks <= LOOKS_MAX) {
		more = false;
		for (size_t at = 0; at < ends->steps->n && !ends->stopped; at++) {
			if (!ends->steps->list[at].entry || ends->never[at] || returns(ends, at))
				continue;
			ends->never[at] = more = true;
		}
		mark_calls(ends);
	}
}

int insn_ends__mark(struct insn_steps *steps)
{
	struct ends ends = { .steps = steps };

	ends.looked = calloc(steps->n + 1, sizeof(*ends.looked));
	ends.never = calloc(steps->n + 1, sizeof(*ends.never));
	ends.full = !ends.looked || !ends.never;
	if (!ends.full)
		find_all(&ends);
	free(ends.looked);
	free(ends.never);
	free(ends.todo);
	return ends.full ? -ENOMEM : ends.stopped;
}
