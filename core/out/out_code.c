// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/out/out_common.h"

/* Rows are numbered. Each code has one row for the function, then those of its instructions. */
struct counting {
	const struct profile *profile;
	const struct output_opts *opts;
	uint32_t *first;       /* by code: its first row */
	uint32_t *code_of_row; /* by row: first row of its code */
	uint32_t *row_of;      /* by frame: row of its instruction; 0: none */
	uint64_t *self, *total;
	uint32_t *open; /* by row: number of its frames on the present path */
	size_t n;
};

static void counting_done(struct counting *counting)
{
	free(counting->first);
	free(counting->code_of_row);
	free(counting->row_of);
	free(counting->self);
	free(counting->total);
	free(counting->open);
}

static uint32_t find_row(const struct output_code *code, uint64_t address)
{
	size_t low = 0, high = code->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (code->rows[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : 0;
}

uint32_t output__find_code(const struct output_code *codes, size_t n, const struct profile *profile,
			   const struct profile_frame *frame, uint32_t *ret_row)
{
	const char *name = strtab__get(profile->strings, frame->name), *path;

	if (!frame->image)
		return 0;
	path = strtab__get(profile->strings, profile->images[frame->image - 1].path);
	for (size_t i = 0; i < n; i++) {
		const struct output_code *code = &codes[i];

		if (code->why ? strcmp(code->name, name) != 0
			      : frame->address < code->start || frame->address >= code->end)
			continue;
		if (strcmp(code->file, path) != 0)
			continue;
		if (ret_row)
			*ret_row = find_row(code, frame->address);
		return i + 1;
	}
	return 0;
}

static int counting_init(struct counting *counting)
{
	const struct profile *profile = counting->profile;
	const struct output_opts *opts = counting->opts;

	counting->first = calloc(opts->n_codes + 1, sizeof(*counting->first));
	counting->row_of = calloc(profile->n_frames + 1, sizeof(*counting->row_of));
	if (!counting->first || !counting->row_of)
		return -ENOMEM;
	counting->n = 1;
	for (size_t i = 0; i < opts->n_codes; i++) {
		counting->first[i] = counting->n;
		counting->n += 2 + opts->codes[i].n;
	}
	counting->code_of_row = calloc(counting->n, sizeof(*counting->code_of_row));
	for (size_t i = 0; counting->code_of_row && i < opts->n_codes; i++)
		for (uint32_t row = counting->first[i];
		     row < counting->first[i] + 2 + opts->codes[i].n; row++)
			counting->code_of_row[row] = counting->first[i];
	for (size_t i = 0; i < profile->n_frames; i++) {
		uint32_t row, code = output__find_code(opts->codes, opts->n_codes, profile,
						       &profile->frames[i], &row);

		if (code)
			counting->row_of[i] = counting->first[code - 1] + 1 + row;
	}
	counting->self = calloc(counting->n, sizeof(*counting->self));
	counting->total = calloc(counting->n, sizeof(*counting->total));
	counting->open = calloc(counting->n, sizeof(*counting->open));
	return counting->code_of_row && counting->self && counting->total && counting->open
		       ? 0
		       : -ENOMEM;
}

/* Adds a node's own weight. Inlined code has the instruction of the frame that contains it. */
static void add_self(struct counting *counting, uint32_t node)
{
	const struct profile *profile = counting->profile;
	uint64_t self = profile->nodes[node].self;
	uint32_t row;

	while (node && profile->frames[profile->nodes[node].frame].kind == KIND_INLINED)
		node = profile->nodes[node].parent;
	row = node ? counting->row_of[profile->nodes[node].frame] : 0;
	if (!row)
		return;
	counting->self[row] += self;
	counting->self[counting->code_of_row[row]] += self;
}

/* Sums up all rows, depth first. A row's total counts only its outermost frame in a stack. */
static int count(struct counting *counting)
{
	const struct profile *profile = counting->profile;
	struct out_tree tree;
	uint32_t depth = 0, *path;
	int ret = out_tree__init(&tree, profile);

	if (ret)
		return ret;
	path = calloc(tree.depth_max + 1, sizeof(*path));
	for (size_t i = 0; path && i < tree.n_order; i++) {
		uint32_t node = tree.order[i];
		uint32_t row = node ? counting->row_of[profile->nodes[node].frame] : 0;

		for (; depth > tree.depth[node]; depth--) {
			counting->open[path[depth - 1]]--;
			counting->open[counting->code_of_row[path[depth - 1]]]--;
		}
		path[depth++] = row; /* row 0: all other frames */
		add_self(counting, node);
		if (!counting->open[row]++)
			counting->total[row] += tree.total[node];
		row = counting->code_of_row[row];
		if (!counting->open[row]++)
			counting->total[row] += tree.total[node];
	}
	ret = path ? 0 : -ENOMEM;
	free(path);
	out_tree__done(&tree);
	return ret;
}

/* ---- output ---- */

static void put_share(const struct profile *profile, uint64_t weight, uint64_t whole, FILE *out)
{
	char text[32];

	output__amount(profile, weight, text, sizeof(text));
	if (weight)
		fprintf(out, "%5.1f%% %10s ", weight * (100.0 / whole), text);
	else
		fprintf(out, "%6s %10s ", "", "");
}

static void put_code(const struct counting *counting, size_t number, FILE *out)
{
	const struct output_code *code = &counting->opts->codes[number];
	const struct profile *profile = counting->profile;
	uint32_t first = counting->first[number];
	uint64_t whole = counting->total[first];
	char text[2][32];

	output__amount(profile, counting->self[first], text[0], sizeof(text[0]));
	output__amount(profile, whole, text[1], sizeof(text[1]));
	putc('\n', out);
	escape__line(out, "%s in %s", code->name, code->file);
	fprintf(out, "self %s, total %s: %.1f%% of all\n", text[0], text[1],
		whole * (100.0 / profile->total));
	if (code->why) {
		escape__line(out, "no code: %s", code->why);
		return;
	}
	fprintf(out, "\n%6s %10s %6s %10s %10s  %s\n", "Self%", "Self", "Total%", "Total",
		"Address", "Instruction");
	for (size_t i = 0; i < code->n; i++) {
		const struct output_instruction *row = &code->rows[i];

		if (row->cut)
			fprintf(out, "%47s\n", "...");
		if (row->place)
			escape__line(out, "%48s%s", "", row->place);
		put_share(profile, counting->self[first + 1 + i], whole, out);
		put_share(profile, counting->total[first + 1 + i], whole, out);
		escape__line(out, "%10" PRIx64 "  %s", row->address, row->text);
	}
}

int output__code(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct counting counting = { .profile = profile, .opts = opts };
	int ret = counting_init(&counting);

	if (!ret)
		ret = count(&counting);
	if (ret)
		goto out;
	output__heading(profile, out);
	fputs("self: samples taken at the instruction; total: with samples in functions that it "
	      "calls; % of the function's total\n",
	      out);
	for (size_t i = 0; i < opts->n_codes; i++)
		put_code(&counting, i, out);
	ret = output__finish(out);
out:
	counting_done(&counting);
	return ret;
}
