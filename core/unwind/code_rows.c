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
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/unwind/code_ends.h"
#include "core/unwind/code_flow.h"
#include "core/unwind/code_ranges.h"
#include "core/unwind/code_starts.h"

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

/* Follows code whose start nothing proves. It is of use only if it leads to a jump by a table: the
 * code at the jump's targets then proves the start. */
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

/* Follows the code that nothing leads to by name, in the order of addresses. */
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
	flow->endless = !flow->guarded;
	for (size_t at = 0; at < flow->steps.n && !flow->failed; at++)
		if (flow->steps.list[at].entry && !flow->states[at].seen)
			code_flow__try(flow, at, &entry, !flow->guarded);
	flow->endless = false;
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

/* Rows in the order of addresses, which end where code ends. */
struct rows {
	cfi_row_fn row;
	void *ctx;
	struct unwind_rule last;
	uint64_t end; /* of the last instruction */
};

static const struct unwind_rule none = { .kind = UNWIND_NONE };

static int put_row(struct rows *rows, uint64_t vaddr, const struct unwind_rule *rule)
{
	if (!memcmp(rule, &rows->last, sizeof(*rule)))
		return 0;
	rows->last = *rule;
	return rows->row(rows->ctx, vaddr, rule);
}

static int put_rows(const struct code_flow *flow, struct rows *rows)
{
	int ret = 0;

	for (size_t at = 0; at < flow->steps.n && !ret; at++) {
		const struct code_step *step = &flow->steps.list[at];
		struct unwind_rule rule = rule_of(flow, at);

		if (step->vaddr != rows->end)
			ret = put_row(rows, rows->end, &none);
		rows->end = step->vaddr + step->size;
		ret = ret ?: put_row(rows, step->vaddr, &rule);
	}
	return ret;
}

/* --- pieces --- */

/* Code is followed in pieces, as each byte takes some 50 bytes of memory. No function is known to
 * lie in two of them: a piece ends where a function may. */
#define PIECE_BYTES   (1 << 20)
#define BOUNDARY_BACK 4096

/* Returns an aligned address in front of @vaddr, behind what may fill up the code to it. */
static uint64_t boundary_before(const struct elf_file *file, uint64_t vaddr)
{
	uint8_t code[BOUNDARY_BACK];
	uint64_t start;

	vaddr -= vaddr % CODE_ALIGNMENT;
	start = vaddr - BOUNDARY_BACK;
	if (elf_file__read(file, start, code, sizeof(code)))
		return vaddr;
	for (size_t at = sizeof(code); at > 0; at -= CODE_ALIGNMENT)
		if (code[at - 1] == 0x90 || code[at - 1] == 0xcc || code[at - 1] == 0xc3 ||
		    code[at - 1] == 0)
			return start + at;
	return vaddr;
}

/* Takes the first PIECE_BYTES of the ranges from @i on, of which the first begins at @at. */
static int take_piece(const struct elf_file *file, const struct code_ranges *ranges, size_t *i,
		      uint64_t *at, struct code_ranges *ret)
{
	uint64_t bytes = 0;

	ret->n = 0;
	while (*i < ranges->n && bytes < PIECE_BYTES) {
		uint64_t start = max_of(*at, ranges->list[*i].start), end = ranges->list[*i].end;

		if (!ranges->named && end - start > PIECE_BYTES - bytes + BOUNDARY_BACK)
			end = boundary_before(file, start + PIECE_BYTES - bytes + BOUNDARY_BACK);
		if (array__reserve(&ret->list, &ret->cap, ret->n + 1, sizeof(*ret->list)))
			return -ENOMEM;
		ret->list[ret->n++] = (struct code_range) { start, end };
		bytes += ranges->named ? 0 : end - start;
		*at = end;
		*i += end == ranges->list[*i].end;
	}
	return 0;
}

/* 0, also where there is nothing. */
static int read_piece(const struct elf_file *file, const struct code_ranges *piece,
		      const struct code_starts *starts, struct rows *rows)
{
	struct code_flow flow = { .file = file, .ranges = *piece, .guarded = !piece->named };
	int ret = code_ranges__read(file, piece, starts, &flow.steps);

	if (!ret && flow.steps.n)
		ret = code_ends__mark(&flow.steps) ?: code_flow__init(&flow);
	if (!ret && flow.steps.n) {
		follow_all(&flow);
		ret = flow.failed ?: put_rows(&flow, rows);
	}
	code_flow__done(&flow);
	code_steps__done(&flow.steps);
	return ret;
}

static int read_pieces(const struct elf_file *file, const struct code_ranges *ranges,
		       struct rows *rows)
{
	struct code_ranges piece = { .described = ranges->described,
				     .n_described = ranges->n_described,
				     .named = ranges->named };
	struct code_starts starts = {};
	int ret = ranges->named ? 0 : code_starts__find(file, ranges, &starts);
	size_t i = 0;
	uint64_t at = 0;

	while (!ret && i < ranges->n) {
		ret = take_piece(file, ranges, &i, &at, &piece);
		if (!ret)
			ret = read_piece(file, &piece, ranges->named ? NULL : &starts, rows);
	}
	free(piece.list);
	code_starts__done(&starts);
	return ret;
}

int code_rows__read(const struct elf_file *file, cfi_row_fn row, void *ctx)
{
	struct rows rows = { .row = row, .ctx = ctx };
	struct code_ranges ranges;
	int ret = code_ranges__find(file, &ranges);

	if (!ret)
		ret = read_pieces(file, &ranges, &rows);
	if (!ret && !rows.end)
		ret = -ENOENT;
	if (!ret)
		ret = put_row(&rows, rows.end, &none);
	code_ranges__done(&ranges);
	return ret;
}

int code_rows__function(const struct elf_file *file, uint64_t start, uint64_t end, cfi_row_fn row,
			void *ctx)
{
	struct code_range range = { start, end };
	struct code_flow flow = { .file = file,
				  .ranges = { .list = &range, .n = 1, .named = true } };
	struct rows rows = { .row = row, .ctx = ctx };
	struct code_state entry;
	int ret = code_steps__read(&flow.steps, file, start, end);

	if (!ret && flow.steps.n)
		ret = code_flow__init(&flow);
	if (!ret && flow.steps.n) {
		code_state__enter(&entry);
		entry.seen = CODE_SEEN;
		code_flow__try(&flow, 0, &entry, true);
		ret = flow.failed ?: put_rows(&flow, &rows);
	}
	if (!ret && rows.end)
		ret = put_row(&rows, rows.end, &none);
	code_flow__done(&flow);
	code_steps__done(&flow.steps);
	return ret == -E2BIG ? 0 : ret;
}
