// SPDX-License-Identifier: GPL-2.0-or-later
/* Builds rules of functions without call frame information from the states that
 * core/insn/insn_flow.c finds. Functions with a proven start (a symbol or a call) are followed
 * first. In a file without any frame descriptions, code without a symbol or a call is followed in
 * two ways: with the state of a jump by a table, or as a function that only a pointer calls. A
 * wrong start is detected at the next return, where the depth must be 8.
 *
 * Between described functions (@guarded) no start is guessed. There the rules of code without a
 * proven start are the frames that returns prove (core/insn/insn_back.h). These frames also start
 * the flow to the rest of the code (docs/decisions/0086-rules-from-returns.md). */
#include "core/insn/insn_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/sort.h"
#include "core/base/util.h"
#include "core/insn/insn_ends.h"
#include "core/insn/insn_flow.h"
#include "core/insn/insn_ranges.h"
#include "core/insn/insn_starts.h"

#define SWITCHES_MAX 4 /* limit of a function's jumps by tables whose states are stored */

/* --- order of the functions --- */

/* Returns the step before @at, without padding, or NULL at the start of a range. */
static const struct insn_step *step_before(const struct insn_flow *flow, size_t at)
{
	const struct insn_step *last = &flow->steps.list[at];

	for (;;) {
		if (last == flow->steps.list || last[-1].vaddr + last[-1].size != last->vaddr)
			return NULL;
		last--;
		if (last->op != INSN_PADDING)
			return last;
	}
}

/* Returns true if a function may start at the step @at: at an aligned address that no flow reaches.
 * A range may start anywhere, for example at a function's part for rare cases. Jumps to the start
 * of a function are rare, and a called start is an entry already. */
static bool may_start(const struct insn_flow *flow, size_t at)
{
	const struct insn_step *step = &flow->steps.list[at], *before = step_before(flow, at);

	return !step->reached && step->vaddr % INSN_ALIGNMENT == 0 &&
	       (!before || before->op == INSN_CALL || !insn_step__goes_on(before));
}

/* Returns true if targets of the jump with state @from prove nothing. Most code has the frame of a
 * function's start. So a target with that frame does not prove the start from which the jump was
 * followed. */
static bool is_weak(const struct insn_flow *flow, const struct insn_state *from)
{
	return from->depth == INSN_ENTRY_DEPTH && !insn_flow__is_accepted(flow, from);
}

/* Follows code whose frame returns prove. If it may be the target of a jump by a table, its state
 * is that of the jump. Without such a jump, its state is the frame alone. */
static void try_proven(struct insn_flow *flow, size_t at, const struct insn_state *entry,
		       const struct insn_state *switches, size_t n_switches)
{
	const struct insn_back *back = &flow->back[at];
	struct insn_state state;

	for (size_t i = 0; i < min_of(n_switches, (size_t)SWITCHES_MAX); i++) {
		const struct insn_state *from = &switches[(n_switches - 1 - i) % SWITCHES_MAX];

		if (insn_back__compare(back, from) != INSN_FITS ||
		    !insn_back__same_registers(back, from) || is_weak(flow, from) ||
		    !insn_flow__try(flow, at, from, false))
			continue;
		insn_flow__prove(flow, from);
		return;
	}
	if (may_start(flow, at) && insn_back__compare(back, entry) == INSN_FITS &&
	    insn_flow__try(flow, at, entry, false))
		return;
	if (insn_back__state(back, &state)) {
		state.seen = INSN_SEEN;
		insn_flow__try(flow, at, &state, false);
	}
}

/* Follows code without a proven start. The result is useful only if it leads to a jump by a table:
 * code at the jump's targets then proves the start. */
static void follow_orphan(struct insn_flow *flow, size_t at, const struct insn_state *entry,
			  const struct insn_state *switches, size_t n_switches)
{
	flow->certain = flow->back && flow->back[at].seen != INSN_BACK_FOUND;
	if (flow->back && flow->back[at].seen == INSN_BACK_FOUND)
		try_proven(flow, at, entry, switches, n_switches);
	else if (may_start(flow, at))
		insn_flow__try(flow, at, entry, false);
	flow->certain = false;
}

/* Follows the code without a symbol or a call, in the order of addresses. */
static void follow_rest(struct insn_flow *flow, const struct insn_state *entry)
{
	const struct insn_step *step = flow->steps.list;
	struct insn_state switches[SWITCHES_MAX];
	size_t n = 0; /* number of jumps by tables in the function so far */

	for (size_t at = 0; at < flow->steps.n && !flow->failed; at++, step++) {
		if (step->entry)
			n = 0;
		if (!flow->states[at].seen && step->op != INSN_PADDING && step->op != INSN_STOP)
			follow_orphan(flow, at, entry, switches, n);
		if (step->op == INSN_SWITCH && flow->states[at].seen == INSN_SEEN)
			switches[n++ % SWITCHES_MAX] = flow->states[at];
	}
}

static void follow_all(struct insn_flow *flow)
{
	struct insn_state entry;

	insn_state__enter(&entry);
	entry.seen = INSN_SEEN;
	flow->endless = !flow->guarded;
	for (size_t at = 0; at < flow->steps.n && !flow->failed; at++)
		if (flow->steps.list[at].entry && !flow->states[at].seen)
			insn_flow__try(flow, at, &entry, !flow->guarded);
	flow->endless = false;
	follow_rest(flow, &entry);
}

/* --- rows --- */

static struct unwind_rule rule_of(const struct insn_flow *flow, size_t at)
{
	const struct insn_step *step = &flow->steps.list[at];
	struct unwind_rule rule = { .kind = UNWIND_NONE };

	if (step->op == INSN_SIGNAL)
		return (struct unwind_rule) { .kind = UNWIND_SIGNAL };
	if (insn_flow__is_proven(flow, at))
		rule = insn_state__rule(&flow->states[at]);
	if (rule.kind == UNWIND_NONE && flow->back && step->op != INSN_PADDING)
		rule = insn_back__rule(&flow->back[at]);
	return rule;
}

/* state of the output: rows in the order of addresses, which end where code ends */
struct rows {
	cfi_row_fn row;
	void *ctx;
	struct unwind_rule last;
	uint64_t end; /* end of the last instruction; link-time address */
};

static const struct unwind_rule none = { .kind = UNWIND_NONE };

static int put_row(struct rows *rows, uint64_t vaddr, const struct unwind_rule *rule)
{
	if (!memcmp(rule, &rows->last, sizeof(*rule)))
		return 0;
	rows->last = *rule;
	return rows->row(rows->ctx, vaddr, rule);
}

static int put_rows(const struct insn_flow *flow, struct rows *rows)
{
	int ret = 0;

	for (size_t at = 0; at < flow->steps.n && !ret; at++) {
		const struct insn_step *step = &flow->steps.list[at];
		struct unwind_rule rule = rule_of(flow, at);

		if (step->vaddr != rows->end)
			ret = put_row(rows, rows->end, &none);
		rows->end = step->vaddr + step->size;
		ret = ret ?: put_row(rows, step->vaddr, &rule);
	}
	return ret;
}

/* --- blocks --- */

/* A large amount of code is followed in blocks. Each block is read with BLOCK_AROUND bytes on both
 * sides, so that most of its functions are complete. The rules of a block depend only on the file,
 * so that blocks can be read in any order. Each byte takes about 50 bytes of memory while it is
 * followed. */
#define BLOCK_AROUND  (32 << 10)
#define BOUNDARY_BACK 4096

/* Returns an aligned address before @vaddr, directly after bytes that may be filling, or @vaddr
 * itself, aligned. */
static uint64_t boundary_before(const struct elf_file *file, uint64_t vaddr)
{
	uint8_t code[BOUNDARY_BACK];
	uint64_t start;

	vaddr -= vaddr % INSN_ALIGNMENT;
	start = vaddr - BOUNDARY_BACK;
	if (elf_file__read(file, start, code, sizeof(code)))
		return vaddr;
	for (size_t at = sizeof(code); at > 0; at -= INSN_ALIGNMENT)
		if (code[at - 1] == 0x90 || code[at - 1] == 0xcc || code[at - 1] == 0xc3 ||
		    code[at - 1] == 0)
			return start + at;
	return vaddr;
}

/* Emits the rows of a piece of code. Returns 0, also if there is no code, or a negative errno. */
static int read_piece(const struct elf_file *file, const struct insn_ranges *piece,
		      const struct insn_starts *starts, struct rows *rows)
{
	struct insn_flow flow = { .file = file, .ranges = *piece, .guarded = !piece->named };
	int ret = insn_ranges__read(file, piece, starts, &flow.steps);

	if (!ret && flow.steps.n)
		ret = insn_ends__mark(&flow.steps) ?: insn_flow__init(&flow);
	if (!ret && flow.steps.n) {
		follow_all(&flow);
		ret = flow.failed ?: put_rows(&flow, rows);
	}
	insn_flow__done(&flow);
	insn_steps__done(&flow.steps);
	return ret;
}

struct insn_reader {
	const struct elf_file *file; /* borrowed */
	struct insn_ranges ranges;
	struct insn_starts starts;
};

static int insn_reader__init(struct insn_reader *reader, const struct elf_file *file)
{
	int ret = insn_ranges__find(file, &reader->ranges);

	reader->file = file;
	if (!ret && !reader->ranges.named)
		ret = insn_starts__find(file, &reader->ranges, &reader->starts);
	return ret;
}

static void insn_reader__done(struct insn_reader *reader)
{
	insn_ranges__done(&reader->ranges);
	insn_starts__done(&reader->starts);
}

int insn_reader__new(const struct elf_file *file, struct insn_reader **ret)
{
	struct insn_reader *reader = calloc(1, sizeof(*reader));
	int rc = reader ? insn_reader__init(reader, file) : -ENOMEM;

	if (rc)
		insn_reader__free(reader);
	else
		*ret = reader;
	return rc;
}

void insn_reader__free(struct insn_reader *reader)
{
	if (!reader)
		return;
	insn_reader__done(reader);
	free(reader);
}

/* Adds the parts of the ranges that are in or around the block at @block to @ret. */
static int take_excerpt(const struct insn_reader *reader, uint64_t block, struct insn_ranges *ret)
{
	uint64_t from = block - min_of(block, (uint64_t)BLOCK_AROUND);
	uint64_t to = block + INSN_BLOCK_BYTES + BLOCK_AROUND;

	for (size_t i = 0; i < reader->ranges.n; i++) {
		struct insn_range range = reader->ranges.list[i];

		if (range.end <= from || range.start >= to)
			continue;
		if (range.start < from)
			range.start = max_of(range.start, boundary_before(reader->file, from));
		if (range.end > to)
			range.end = max_of(range.start, boundary_before(reader->file, to));
		if (array__reserve(&ret->list, &ret->cap, ret->n + 1, sizeof(*ret->list)))
			return -ENOMEM;
		ret->list[ret->n++] = range;
	}
	return 0;
}

/* Returns the starts in the window; borrowed. */
static struct insn_starts starts_in(const struct insn_reader *reader,
				    const struct insn_ranges *excerpt)
{
	const struct insn_starts *all = &reader->starts;
	size_t from = sorted__count_up_to(all->list, all->n, sizeof(*all->list),
					  excerpt->list[0].start - 1);
	size_t to = sorted__count_up_to(all->list, all->n, sizeof(*all->list),
					excerpt->list[excerpt->n - 1].end - 1);

	return (struct insn_starts) { .list = all->list + from, .n = to - from };
}

/* a filter that passes on only the rows of a block from those of its window */
struct block_rows {
	struct rows *to;
	uint64_t start, end;
	struct unwind_rule now; /* rule at the start of the block */
	bool begun;
};

static int begin_block(struct block_rows *block)
{
	block->begun = true;
	return put_row(block->to, block->start, &block->now);
}

static int on_excerpt_row(void *ctx, uint64_t vaddr, const struct unwind_rule *rule)
{
	struct block_rows *block = ctx;
	int ret = 0;

	if (vaddr <= block->start)
		block->now = *rule;
	if (vaddr > block->start && !block->begun)
		ret = begin_block(block);
	if (!ret && vaddr > block->start && vaddr < block->end)
		ret = put_row(block->to, vaddr, rule);
	return ret;
}

static int read_block(const struct insn_reader *reader, uint64_t start, struct rows *rows)
{
	struct insn_ranges excerpt = { .described = reader->ranges.described,
				       .n_described = reader->ranges.n_described,
				       .later = reader->ranges.later };
	struct block_rows block = { .to = rows, .start = start, .end = start + INSN_BLOCK_BYTES };
	struct rows found = { .row = on_excerpt_row, .ctx = &block };
	struct insn_starts starts;
	int ret = take_excerpt(reader, start, &excerpt);

	if (!ret && excerpt.n) {
		starts = starts_in(reader, &excerpt);
		ret = read_piece(reader->file, &excerpt, &starts, &found);
	}
	if (!ret && found.end)
		ret = put_row(&found, found.end, &none);
	if (!ret && !block.begun)
		ret = begin_block(&block);
	rows->end = block.end;
	free(excerpt.list);
	return ret;
}

int insn_reader__block(const struct insn_reader *reader, uint64_t vaddr, cfi_row_fn row, void *ctx)
{
	struct rows rows = { .row = row, .ctx = ctx };
	int ret = read_block(reader, INSN_BLOCK_START(vaddr), &rows);

	return ret ?: put_row(&rows, rows.end, &none);
}

/* --- whole files --- */

/* Returns 1 if the rules of @range are deferred, 0 if it has frame pointers, or -ENOMEM. */
static int is_put_off(const struct elf_file *file, const struct insn_range *range)
{
	int ret = insn_range__has_frame_pointers(file, range);

	return ret < 0 ? ret : !ret;
}

/* Emits rows of the kind UNWIND_LATER in place of deferred rules. */
static int put_off(const struct insn_reader *reader, struct rows *rows)
{
	static const struct unwind_rule later = { .kind = UNWIND_LATER };
	int ret = 0;

	for (size_t i = 0; i < reader->ranges.n && ret >= 0; i++) {
		const struct insn_range *range = &reader->ranges.list[i];

		if (range->start != rows->end)
			ret = put_row(rows, rows->end, &none);
		if (!ret)
			ret = is_put_off(reader->file, range);
		if (ret >= 0)
			ret = put_row(rows, range->start, ret ? &later : &none);
		rows->end = range->end;
	}
	return ret;
}

static int read_blocks(const struct insn_reader *reader, struct rows *rows)
{
	int ret = 0;

	for (size_t i = 0; i < reader->ranges.n && ret >= 0; i++) {
		const struct insn_range *range = &reader->ranges.list[i];
		uint64_t at = max_of(INSN_BLOCK_START(range->start), rows->end);

		ret = is_put_off(reader->file, range);
		if (!ret)
			continue;
		for (; at < range->end && ret >= 0; at += INSN_BLOCK_BYTES)
			ret = read_block(reader, at, rows);
	}
	return min_of(ret, 0);
}

int insn_rows__read(const struct elf_file *file, bool all, cfi_row_fn row, void *ctx)
{
	struct rows rows = { .row = row, .ctx = ctx };
	struct insn_reader reader = { .file = file };
	int ret = insn_ranges__find(file, &reader.ranges);
	bool off = !all && reader.ranges.later;

	if (!ret && !reader.ranges.named && !off)
		ret = insn_starts__find(file, &reader.ranges, &reader.starts);
	if (!ret && off)
		ret = put_off(&reader, &rows);
	else if (!ret && reader.ranges.later)
		ret = read_blocks(&reader, &rows);
	else if (!ret)
		ret = read_piece(file, &reader.ranges, reader.ranges.named ? NULL : &reader.starts,
				 &rows);
	if (!ret && !rows.end)
		ret = -ENOENT;
	if (!ret)
		ret = put_row(&rows, rows.end, &none);
	insn_reader__done(&reader);
	return ret;
}

int insn_rows__function(const struct elf_file *file, uint64_t start, uint64_t end, cfi_row_fn row,
			void *ctx)
{
	struct insn_range range = { start, end };
	struct insn_flow flow = { .file = file,
				  .ranges = { .list = &range, .n = 1, .named = true } };
	struct rows rows = { .row = row, .ctx = ctx };
	struct insn_state entry;
	int ret = insn_steps__read(&flow.steps, file, start, end);

	if (!ret && flow.steps.n)
		ret = insn_flow__init(&flow);
	if (!ret && flow.steps.n) {
		insn_state__enter(&entry);
		entry.seen = INSN_SEEN;
		insn_flow__try(&flow, 0, &entry, true);
		ret = flow.failed ?: put_rows(&flow, &rows);
	}
	if (!ret && rows.end)
		ret = put_row(&rows, rows.end, &none);
	insn_flow__done(&flow);
	insn_steps__done(&flow.steps);
	return ret == -E2BIG ? 0 : ret;
}
