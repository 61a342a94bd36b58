// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules of functions without call frame information, of which core/unwind/code_flow.c finds the
 * states. Functions whose start is proven, by a symbol or a call, are followed first. In a file
 * that has no frame descriptions at all, code that nothing leads to by name begins as a jump by a
 * table left things, or as a function that nobody calls by name. A wrong start shows at the next
 * return, where the depth must be 8.
 *
 * Between functions that are described (`guarded`) no start is guessed. There the frames that
 * returns prove (core/unwind/code_back.h) are the rules of code whose start is unknown, and start
 * the flow that leads to the rest of it (docs/decisions/0086-rules-from-returns.md). */
#include "core/unwind/code_rows.h"

#include <errno.h>
#include <string.h>

#include "core/base/util.h"
#include "core/unwind/code_ends.h"
#include "core/unwind/code_flow.h"
#include "core/unwind/code_ranges.h"

#define SWITCHES_MAX 4 /* of a function, whose states are kept */

/* --- the order in which functions are tried --- */

/* Returns the step in front of @at, padding left out, or NULL at the start of a range. */
static const struct code_step *step_before(const struct code_flow *flow, size_t at)
{
	const struct code_step *last = &flow->steps.list[at];

	for (;;) {
		if (last == flow->steps.list || last[-1].vaddr + last[-1].size != last->vaddr)
			return NULL;
		last--;
		if (last->op != CODE_PADDING)
			return last;
	}
}

/* A function may start where no flow leads to, at an aligned address. Ranges start anywhere: with
 * the part of a function that is executed rarely, for one.
 * Jumps to the start of a function are rare, and calls of it have made it an entry. */
static bool may_start(const struct code_flow *flow, size_t at)
{
	const struct code_step *step = &flow->steps.list[at], *before = step_before(flow, at);

	return !step->reached && step->vaddr % CODE_ALIGNMENT == 0 &&
	       (!before || before->op == CODE_CALL || !code_step__goes_on(before));
}

/* The frame of most code is that of a function's start. So where a jump with this frame leads is no
 * proof of the start that the jump was followed from. */
static bool is_weak(const struct code_flow *flow, const struct code_state *from)
{
	return from->depth == CODE_ENTRY_DEPTH && !code_flow__is_accepted(flow, from);
}

/* Code that a jump by a table leads to, as far as returns prove its frame, has what the jump has
 * left. Without such a jump the frame is all that is known. */
static void try_proven(struct code_flow *flow, size_t at, const struct code_state *entry,
		       const struct code_state *switches, size_t n_switches)
{
	const struct code_back *back = &flow->back[at];
	struct code_state state;

	for (size_t i = 0; i < min_of(n_switches, (size_t)SWITCHES_MAX); i++) {
		const struct code_state *from = &switches[(n_switches - 1 - i) % SWITCHES_MAX];

		if (code_back__compare(back, from) != CODE_FITS ||
		    !code_back__same_registers(back, from) || is_weak(flow, from) ||
		    !code_flow__try(flow, at, from, false))
			continue;
		code_flow__prove(flow, from);
		return;
	}
	if (may_start(flow, at) && code_back__compare(back, entry) == CODE_FITS &&
	    code_flow__try(flow, at, entry, false))
		return;
	if (code_back__state(back, &state)) {
		state.seen = CODE_SEEN;
		code_flow__try(flow, at, &state, false);
	}
}

/* Of a start that nothing proves only what leads to a jump by a table is of use: what is found at
 * its targets proves the start. */
static void follow_orphan(struct code_flow *flow, size_t at, const struct code_state *entry,
			  const struct code_state *switches, size_t n_switches)
{
	flow->certain = flow->back && flow->back[at].seen != CODE_BACK_KNOWN;
	if (flow->back && flow->back[at].seen == CODE_BACK_KNOWN)
		try_proven(flow, at, entry, switches, n_switches);
	else if (may_start(flow, at))
		code_flow__try(flow, at, entry, false);
	flow->certain = false;
}

/* What nothing leads to by name, in the order of addresses. */
static void follow_rest(struct code_flow *flow, const struct code_state *entry)
{
	const struct code_step *step = flow->steps.list;
	struct code_state switches[SWITCHES_MAX];
	size_t n = 0; /* that were found in the function */

	for (size_t at = 0; at < flow->steps.n && !flow->failed; at++, step++) {
		if (step->entry)
			n = 0;
		if (!flow->states[at].seen && step->op != CODE_PADDING && step->op != CODE_STOP)
			follow_orphan(flow, at, entry, switches, n);
		if (step->op == CODE_SWITCH && flow->states[at].seen == CODE_SEEN)
			switches[n++ % SWITCHES_MAX] = flow->states[at];
	}
}

static void follow_all(struct code_flow *flow)
{
	struct code_state entry;

	code_state__enter(&entry);
	entry.seen = CODE_SEEN;
	for (size_t at = 0; at < flow->steps.n && !flow->failed; at++)
		if (flow->steps.list[at].entry && !flow->states[at].seen)
			code_flow__try(flow, at, &entry, !flow->guarded);
	follow_rest(flow, &entry);
}

/* --- rows --- */

static struct unwind_rule rule_of(const struct code_flow *flow, size_t at)
{
	const struct code_step *step = &flow->steps.list[at];
	struct unwind_rule rule = { .kind = UNWIND_NONE };

	if (step->op == CODE_SIGNAL)
		return (struct unwind_rule) { .kind = UNWIND_SIGNAL };
	if (code_flow__is_proven(flow, at))
		rule = code_state__rule(&flow->states[at]);
	if (rule.kind == UNWIND_NONE && flow->back && step->op != CODE_PADDING)
		rule = code_back__rule(&flow->back[at]);
	return rule;
}

static int put_rows(const struct code_flow *flow, cfi_row_fn row, void *ctx)
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
		rule = rule_of(flow, at);
		if (ret || !memcmp(&rule, &last, sizeof(rule)))
			continue;
		ret = row(ctx, step->vaddr, &rule);
		last = rule;
	}
	return ret || last.kind == UNWIND_NONE ? ret : row(ctx, end, &none);
}

int code_rows__read(const struct elf_file *file, cfi_row_fn row, void *ctx)
{
	struct code_flow flow = { .file = file };
	int ret = code_ranges__find(file, &flow.ranges);

	flow.guarded = !flow.ranges.named;
	if (!ret)
		ret = code_ranges__read(file, &flow.ranges, &flow.steps);
	if (!ret && !flow.steps.n)
		ret = -ENOENT;
	if (!ret)
		ret = code_ends__mark(&flow.steps);
	if (!ret)
		ret = code_flow__init(&flow);
	if (!ret) {
		follow_all(&flow);
		ret = flow.failed ?: put_rows(&flow, row, ctx);
	}
	code_flow__done(&flow);
	code_ranges__done(&flow.ranges);
	code_steps__done(&flow.steps);
	return ret;
}
