// SPDX-License-Identifier: GPL-2.0-or-later
/* Control flow of functions without call frame information.
 *
 *   state    Compiled code moves the stack pointer by constants. At a function's first instruction
 *            the CFA is 8 above the stack pointer, so it follows for each later instruction.
 *   edges    A jump, a branch and the next instruction of anything but a call are certain: if the
 *            first instruction is executed with this state, the second one may be as well. The
 *            instruction after a call is not certain, because a call of abort() does not return.
 *            Other code follows such a call, perhaps the next function.
 *   returns  At a return the depth is that of the return address, 8. Any other depth is a
 *            contradiction, and so are two paths to one instruction with different states.
 *   blame    A contradiction in code that only the return of a call reaches proves that the call
 *            does not return (or that the start is wrong). The call becomes INSN_STOP, and all flow
 *            is followed again.
 *   judging  An instruction is accepted if certain edges lead to it from the start. The edge after
 *            a call is accepted if a return follows it, with the right depth, or a jump from there
 *            leads back to accepted code. Code after a call without a return may be another
 *            function, so it has no rule.
 *   guarded  Between functions with frame descriptions each state must agree with the frame that
 *            returns prove (core/insn/insn_back.h). The edge after a call is followed in three
 *            cases: the frame after it is proven and agrees, the called function is proven to
 *            return, or neither a function may start there nor a jump leads there.
 *   groups   In guarded flow the targets of a jump by a table are unknown. Code that leads only to
 *            such a jump is in a group that is proven later. The proof is code that may be the
 *            jump's target and returns with the jump's state. */
#include "core/insn/insn_flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/insn/insn_tables.h"

/* Limit of instructions followed in total: the cost of a hostile file. */
#define FOLLOWED_MAX (32 << 20)

/* Limit of calls of one function that are proven not to return. Each costs one more pass over the
 * function. */
#define BLAMES_MAX 256

enum { OPEN, PROVEN };				    /* state of a group */
enum { MAINTAINED = 1, REACHES = 2, SWITCHES = 4 }; /* marks of a step */

struct successors {
	uint32_t list[INSN_CASES_MAX + 2];
	size_t n;
	bool returns; /* ends the function as a return does */
	int64_t next; /* step after a call; -1: none */
};

int insn_flow__init(struct insn_flow *flow)
{
	flow->states = calloc(flow->steps.n + 1, sizeof(*flow->states));
	flow->marks = calloc(flow->steps.n + 1, sizeof(*flow->marks));
	if (!flow->states || !flow->marks)
		return -ENOMEM;
	return flow->guarded ? insn_back__find(flow->file, &flow->ranges, &flow->steps, &flow->back)
			     : 0;
}

void insn_flow__done(struct insn_flow *flow)
{
	free(flow->states);
	free(flow->back);
	free(flow->marks);
	free(flow->todo);
	free(flow->changed);
	free(flow->blamed);
	free(flow->groups);
	flow->states = NULL;
	flow->back = NULL;
	flow->marks = flow->groups = NULL;
	flow->todo = flow->changed = flow->blamed = NULL;
	flow->n_todo = flow->n_changed = flow->n_blamed = flow->n_groups = 0;
	flow->cap_todo = flow->cap_changed = flow->cap_blamed = flow->cap_groups = 0;
}

static void append(struct insn_flow *flow, uint32_t **list, size_t *n, size_t *cap, uint32_t at)
{
	if (array__reserve(list, cap, *n + 1, sizeof(**list)))
		flow->failed = -ENOMEM;
	else
		(*list)[(*n)++] = at;
}

static void queue(struct insn_flow *flow, uint32_t at)
{
	append(flow, &flow->todo, &flow->n_todo, &flow->cap_todo, at);
}

bool insn_flow__is_accepted(const struct insn_flow *flow, const struct insn_state *state)
{
	return flow->groups[state->group] == PROVEN;
}

bool insn_flow__is_proven(const struct insn_flow *flow, size_t at)
{
	const struct insn_state *state = &flow->states[at];

	return state->seen == INSN_SEEN && (!flow->guarded || insn_flow__is_accepted(flow, state));
}

void insn_flow__prove(struct insn_flow *flow, const struct insn_state *state)
{
	flow->groups[state->group] = PROVEN;
}

/* --- following --- */

static enum insn_fit fit_of(const struct insn_flow *flow, size_t at, const struct insn_state *state)
{
	return flow->back ? insn_back__compare(&flow->back[at], state) : INSN_FIT_UNKNOWN;
}

/* Returns true if the call at step @at may return with @state. After a call of abort() there is
 * other code: a function, or code that only a jump reaches. */
static bool may_return(const struct insn_flow *flow, size_t at, const struct insn_state *state)
{
	const struct insn_step *next = &flow->steps.list[at + 1];
	enum insn_fit fit = fit_of(flow, at + 1, state);

	if (!flow->back || fit != INSN_FIT_UNKNOWN)
		return fit != INSN_CONTRADICTS;
	return insn_back__returns(flow->back, &flow->steps, flow->steps.list[at].target) ||
	       (!flow->certain && next->op != INSN_PADDING && next->vaddr % INSN_ALIGNMENT &&
		!next->reached);
}

static void contradict(struct insn_flow *flow, uint32_t call)
{
	if (!flow->wrong)
		flow->call = call;
	flow->wrong = true;
}

static bool is_own(const struct insn_flow *flow, const struct insn_state *state)
{
	return state->group == flow->n_groups - 2;
}

/* Joins a second path to the step @at. @after: the new path is from the call before the step. */
static void meet(struct insn_flow *flow, size_t at, const struct insn_state *state, bool after)
{
	struct insn_state *old = &flow->states[at], same = *state;
	bool changed = insn_state__join(old, &same);

	same.group = old->group;
	same.call = old->call;
	if (memcmp(old, &same, sizeof(same))) {
		contradict(flow,
			   after || !old->call || !is_own(flow, old) ? state->call : old->call);
		if (!is_own(flow, old) && !state->call && !insn_flow__is_accepted(flow, old))
			old->seen = INSN_CONTRADICTED;
	} else if (changed && is_own(flow, old)) {
		queue(flow, at);
	}
}

static void put(struct insn_flow *flow, size_t at, const struct insn_state *state, bool after)
{
	struct insn_state *old = &flow->states[at];

	if (old->seen == INSN_CONTRADICTED || fit_of(flow, at, state) == INSN_CONTRADICTS) {
		contradict(flow, state->call);
		return;
	}
	if (old->seen == INSN_SEEN) {
		meet(flow, at, state, after);
		return;
	}
	*old = *state;
	old->group = flow->n_groups - 2;
	append(flow, &flow->changed, &flow->n_changed, &flow->cap_changed, at);
	queue(flow, at);
}

/* Ends the function. The stack pointer must be where the caller's call put it. */
static void leave(struct insn_flow *flow, const struct insn_state *state)
{
	if (!state->is_last && (state->depth != INSN_ENTRY_DEPTH || state->lost))
		contradict(flow, state->call);
}

/* Follows a jump. At a jump to another function (a tail call) the stack must be as the caller left
 * it. */
static void jump(struct insn_flow *flow, uint64_t target, const struct insn_state *state)
{
	const struct insn_step *step = insn_steps__at(&flow->steps, target);

	if (step && !step->entry)
		put(flow, step - flow->steps.list, state, false);
	else if (!step && !insn_ranges__may_enter(&flow->ranges, target))
		contradict(flow, state->call);
	else
		leave(flow, state);
}

static const struct insn_step *next_of(const struct insn_flow *flow, size_t at)
{
	const struct insn_step *step = &flow->steps.list[at], *next = step + 1;

	return !insn_step__goes_on(step) || at + 1 == flow->steps.n || next->entry ||
			       next->vaddr != step->vaddr + step->size
		       ? NULL
		       : next;
}

static void follow_one(struct insn_flow *flow, size_t at)
{
	const struct insn_step *step = &flow->steps.list[at];
	const struct insn_step *cases[INSN_CASES_MAX];
	struct insn_state state = flow->states[at];
	size_t n = 0;

	if (step->op == INSN_RETURN || step->op == INSN_TAIL)
		leave(flow, &state);
	if (step->op == INSN_JUMP || step->op == INSN_BRANCH)
		jump(flow, step->target, &state);
	if (step->op == INSN_SWITCH && !flow->guarded)
		n = insn_tables__read(flow->file, &flow->steps, at, cases);
	for (size_t i = 0; i < n; i++)
		put(flow, cases[i] - flow->steps.list, &state, false);
	if (!next_of(flow, at))
		return;
	insn_state__advance(&state, step, flow->guarded);
	if (!insn_state__is_determined(&state))
		return;
	if (step->op == INSN_CALL && !may_return(flow, at, &state))
		return;
	if (step->op == INSN_CALL)
		state.call = at + 1;
	put(flow, at + 1, &state, step->op == INSN_CALL);
}

static void undo(struct insn_flow *flow)
{
	for (size_t i = 0; i < flow->n_changed; i++)
		flow->states[flow->changed[i]].seen = INSN_UNSEEN;
	flow->n_changed = 0;
}

/* Follows the flow from step @at. Returns false if it found a contradiction or failed. */
static bool follow(struct insn_flow *flow, size_t at, const struct insn_state *state)
{
	struct insn_state first = *state;
	int rc;

	first.call = 0;
	flow->wrong = false;
	flow->call = 0;
	flow->n_changed = flow->n_todo = 0;
	put(flow, at, &first, false);
	while (flow->n_todo && !flow->wrong && !flow->failed) {
		rc = quota__look_at(flow->followed);
		if (rc)
			flow->failed = rc;
		if (flow->followed++ >= FOLLOWED_MAX)
			flow->wrong = true;
		else
			follow_one(flow, flow->todo[--flow->n_todo]);
	}
	return !flow->wrong && !flow->failed;
}

/* --- judging --- */

static void find_successors(const struct insn_flow *flow, size_t at, struct successors *ret)
{
	const struct insn_step *step = &flow->steps.list[at], *to, *next = next_of(flow, at);
	const struct insn_step *cases[INSN_CASES_MAX];

	ret->n = 0;
	ret->next = -1;
	ret->returns = step->op == INSN_RETURN || step->op == INSN_TAIL;
	if (step->op == INSN_JUMP || step->op == INSN_BRANCH) {
		to = insn_steps__at(&flow->steps, step->target);
		if (to && !to->entry)
			ret->list[ret->n++] = to - flow->steps.list;
		else
			ret->returns = true;
	}
	if (step->op == INSN_SWITCH && !flow->guarded) {
		ret->n = insn_tables__read(flow->file, &flow->steps, at, cases);
		for (size_t i = 0; i < ret->n; i++)
			ret->list[i] = cases[i] - flow->steps.list;
	}
	if (next && flow->states[at + 1].seen == INSN_SEEN) {
		if (step->op == INSN_CALL)
			ret->next =
				may_return(flow, at, &flow->states[at + 1]) ? (int64_t)at + 1 : -1;
		else
			ret->list[ret->n++] = at + 1;
	}
}

/* Returns true if the instruction @at, after a call, is part of the function. */
static bool goes_on(const struct insn_flow *flow, size_t at)
{
	const struct insn_step *step = &flow->steps.list[at];

	return flow->marks[at] & (REACHES | SWITCHES) ||
	       (flow->endless && step->op != INSN_PADDING && !step->referred);
}

/* Marks all steps that certain edges reach from the queued steps as part of the function. After
 * calls, marks only steps that reach a return, or all steps of a function that never returns.
 * Returns true if it marked a step. */
static bool keep(struct insn_flow *flow)
{
	struct successors *successors = malloc(sizeof(*successors));
	bool ret = false;

	if (!successors)
		flow->failed = -ENOMEM;
	while (flow->n_todo && !flow->failed) {
		uint32_t at = flow->todo[--flow->n_todo];

		if (flow->marks[at] & MAINTAINED || flow->states[at].seen != INSN_SEEN)
			continue;
		flow->marks[at] |= MAINTAINED;
		ret = true;
		find_successors(flow, at, successors);
		for (size_t i = 0; i < successors->n; i++)
			queue(flow, successors->list[i]);
		if (successors->next >= 0 && goes_on(flow, successors->next))
			queue(flow, successors->next);
	}
	free(successors);
	return ret;
}

/* Returns the marks of the step @at: REACHES if the flow from it reaches a return or an accepted
 * step, SWITCHES if it reaches a jump of unknown targets. */
static uint8_t outlook(const struct insn_flow *flow, size_t at, struct successors *successors)
{
	uint8_t ret = 0;
	const struct insn_step *step = &flow->steps.list[at];

	find_successors(flow, at, successors);
	if (successors->returns || fit_of(flow, at, &flow->states[at]) == INSN_FITS)
		return REACHES;
	if (step->op == INSN_SWITCH && flow->guarded)
		return SWITCHES;
	if (successors->next >= 0)
		ret |= flow->marks[successors->next] & (REACHES | SWITCHES);
	for (size_t i = 0; i < successors->n; i++) {
		uint32_t to = successors->list[i];

		ret |= flow->marks[to] & (REACHES | SWITCHES);
		if (is_own(flow, &flow->states[to])
			    ? to != at + 1 && flow->marks[to] & MAINTAINED && !flow->guarded
			    : insn_flow__is_accepted(flow, &flow->states[to]))
			ret |= REACHES;
	}
	return ret;
}

static int compare(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? 1 : -(*x > *y);
}

/* Sets the marks of all changed steps, from the highest address to the lowest, until nothing
 * changes: most flow goes forward. */
static void look_ahead(struct insn_flow *flow)
{
	struct successors *successors = malloc(sizeof(*successors));
	bool more = true;

	if (!successors)
		flow->failed = -ENOMEM;
	while (more && !flow->failed) {
		more = false;
		for (size_t i = 0; i < flow->n_changed && !flow->failed; i++) {
			uint32_t at = flow->changed[i];
			uint8_t marks;

			if (flow->marks[at] & REACHES)
				continue;
			if (flow->followed++ >= FOLLOWED_MAX)
				break;
			flow->failed = quota__look_at(flow->followed);
			marks = outlook(flow, at, successors) & ~flow->marks[at];
			flow->marks[at] |= marks;
			more |= marks != 0;
		}
	}
	free(successors);
}

/* Assigns the steps that reach a return to the first of the try's two groups, and the rest to the
 * second one. */
static void settle(struct insn_flow *flow)
{
	size_t group = flow->n_groups - 2;

	flow->returned = flow->switched = false;
	for (size_t i = 0; i < flow->n_changed; i++) {
		uint32_t at = flow->changed[i];
		struct insn_state *state = &flow->states[at];
		uint8_t marks = flow->marks[at];

		flow->marks[at] = 0;
		if (!(marks & MAINTAINED)) {
			state->seen = INSN_UNSEEN;
			continue;
		}
		flow->returned |= (marks & REACHES) != 0 && !flow->certain;
		flow->switched |= (marks & SWITCHES) != 0;
		state->group = flow->certain			     ? group + 1
			       : marks & REACHES || state->call == 0 ? group
								     : group + 1;
	}
	if (flow->returned)
		flow->groups[group] = PROVEN;
}

static void judge(struct insn_flow *flow, size_t at)
{
	bool more = true;

	qsort(flow->changed, flow->n_changed, sizeof(*flow->changed), compare);
	look_ahead(flow);
	flow->n_todo = 0;
	queue(flow, at);
	keep(flow);
	while (more && !flow->failed) {
		size_t n = 0;

		look_ahead(flow);
		for (size_t i = 0; i < flow->n_changed; i++) {
			uint32_t from = flow->changed[i];

			if (!(flow->marks[from] & MAINTAINED) || from + 1 >= flow->steps.n ||
			    flow->steps.list[from].op != INSN_CALL ||
			    flow->marks[from + 1] & MAINTAINED ||
			    !may_return(flow, from, &flow->states[from + 1]) ||
			    !(flow->marks[from + 1] & (REACHES | SWITCHES)) || !next_of(flow, from))
				continue;
			queue(flow, from + 1);
			n++;
		}
		more = n && keep(flow);
	}
}

/* --- */

static bool new_groups(struct insn_flow *flow)
{
	if (array__reserve(&flow->groups, &flow->cap_groups, flow->n_groups + 2,
			   sizeof(*flow->groups))) {
		flow->failed = -ENOMEM;
		return false;
	}
	flow->groups[flow->n_groups++] = OPEN;
	flow->groups[flow->n_groups++] = OPEN;
	return true;
}

/* Follows the flow from step @at. After a contradiction, repeats it without the return of the call
 * that led there. Returns true without a contradiction. */
static bool follow_and_blame(struct insn_flow *flow, size_t at, const struct insn_state *state)
{
	flow->n_blamed = 0;
	while (!follow(flow, at, state)) {
		undo(flow);
		if (flow->failed || !flow->call || flow->n_blamed == BLAMES_MAX)
			break;
		flow->steps.list[flow->call - 1].op = INSN_STOP;
		append(flow, &flow->blamed, &flow->n_blamed, &flow->cap_blamed, flow->call - 1);
	}
	return !flow->wrong && !flow->failed;
}

bool insn_flow__try(struct insn_flow *flow, size_t at, const struct insn_state *state, bool named)
{
	bool good;

	if (flow->failed || !new_groups(flow))
		return false;
	flow->returned = flow->switched = false;
	good = follow_and_blame(flow, at, state);
	if (good) {
		judge(flow, at);
		settle(flow);
		good = !flow->failed &&
		       (flow->returned || named || (flow->guarded && flow->switched));
	}
	if (good)
		return true;
	undo(flow);
	for (size_t i = 0; i < flow->n_blamed; i++)
		flow->steps.list[flow->blamed[i]].op = INSN_CALL;
	return false;
}
