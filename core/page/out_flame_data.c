// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/page/out_flame.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/title.h"
#include "core/base/util.h"
#include "core/profile/diff.h"
#include "core/profile/function_rules.h"

#define COLOUR_GROUP 8 /* class k8 in flame.css */

/* The classes of runtimes' kinds, in the order in which recordings number them. There is one for
 * each runtime, so that no two of a page share a colour. */
static const uint8_t runtime_colours[] = { 3, 9, 5, 2, 7, 4, 6, 10, 11 };

void flame__done(struct flame *flame)
{
	out_tree__done(&flame->tree);
	strtab__free(flame->strings);
	free(flame->labels);
	free(flame->names);
	free(flame->files);
	free(flame->libraries);
	free(flame->by_rank);
}

static int intern_frame(struct flame *flame, uint32_t number, int annotate)
{
	const struct profile *profile = flame->profile;
	struct profile_frame frame = profile->frames[number];
	char *label = output__label(profile, &frame, annotate), *name;
	int err = -ENOMEM;

	frame.line = 0;
	name = output__label(profile, &frame, annotate);
	if (label && name)
		err = strtab__intern(flame->strings, label, &flame->labels[number]);
	if (!err)
		err = strtab__intern(flame->strings, name, &flame->names[number]);
	if (!err)
		err = strtab__intern(flame->strings, strtab__get(profile->strings, frame.file),
				     &flame->files[number]);
	if (!err)
		err = strtab__intern(flame->strings, strtab__get(profile->strings, frame.library),
				     &flame->libraries[number]);
	flame->by_rank[flame->tree.ranks[number]] = number;
	free(label);
	free(name);
	return err;
}

int flame__init(struct flame *flame, const struct profile *profile, int annotate)
{
	int err;

	flame->profile = profile;
	err = out_tree__init(&flame->tree, profile);
	if (err)
		return err;
	flame->strings = strtab__new();
	flame->labels = calloc(profile->n_frames + 1, sizeof(*flame->labels));
	flame->names = calloc(profile->n_frames + 1, sizeof(*flame->names));
	flame->files = calloc(profile->n_frames + 1, sizeof(*flame->files));
	flame->libraries = calloc(profile->n_frames + 1, sizeof(*flame->libraries));
	flame->by_rank = calloc(profile->n_frames + 1, sizeof(*flame->by_rank));
	if (!flame->strings || !flame->labels || !flame->names || !flame->files ||
	    !flame->libraries || !flame->by_rank)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_frames && !err; i++)
		err = intern_frame(flame, i, annotate);
	return err;
}

size_t flame__colour(const struct profile *profile, size_t kind)
{
	if (kind && kind == profile->group_kind)
		return COLOUR_GROUP;
	if (kind == KIND_INLINED)
		return KIND_NATIVE;
	if (kind < KIND_RUNTIME)
		return kind;
	return runtime_colours[(kind - KIND_RUNTIME) % ARRAY_SIZE(runtime_colours)];
}

const char *flame__target(const struct profile *profile)
{
	return profile->target && *profile->target ? profile->target : "Flame graph";
}

const char *flame__event(const struct profile *profile)
{
	return profile->event && *profile->event ? profile->event : "cpu";
}

/* Writes a number in a form that is short and fast to read: unpack in flame_data.js. */
static void put_packed(FILE *out, uint64_t number)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";

	for (; number >= 32; number /= 32)
		putc_unlocked(digits[number % 32 + 32], out);
	putc_unlocked(digits[number], out);
}

static void put_tree(const struct flame *flame, FILE *out)
{
	const struct profile *profile = flame->profile;
	uint32_t depth = 0;

	for (size_t i = 0; i < flame->tree.n_order; i++) {
		uint32_t node = flame->tree.order[i];

		put_packed(out, i ? depth + 1 - flame->tree.depth[node] : 0);
		put_packed(out,
			   i ? flame->tree.ranks[profile->nodes[node].frame] : profile->n_frames);
		put_packed(out, profile->nodes[node].self);
		depth = flame->tree.depth[node];
	}
}

/* Writes the weights of one of two recordings by node, in the unit in which they were recorded. */
static void put_side(const struct flame *flame, const struct diff *diff, int side, FILE *out)
{
	fprintf(out, ",\n\"%s\":\"", side == DIFF_OLD ? "old" : "new");
	for (size_t i = 0; i < flame->tree.n_order; i++)
		put_packed(out, diff->of_node[side][flame->tree.order[i]] / diff->sides[side].unit +
					0.5);
	fputs("\"", out);
}

/* Writes the weights by thread and node. @numbers: numbers of nodes in the page. */
static void put_shares(const struct diff_side *side, const uint32_t *numbers, FILE *out)
{
	uint32_t role = 0;

	for (size_t i = 0; i < side->n_shares; i++) {
		const struct diff_share *share = &side->shares[i];
		const uint64_t row[] = { share->role - role, share->thread, numbers[share->node],
					 share->weight / side->unit + 0.5,
					 share->weight * share->weight / share->squares + 0.5 };

		for (size_t at = 0; at < ARRAY_SIZE(row); at++)
			put_packed(out, row[at]);
		role = share->role;
	}
}

/* Returns the numbers of nodes in the page, owned by the caller; NULL: out of memory. */
static uint32_t *number_nodes(const struct flame *flame)
{
	uint32_t *numbers = calloc(flame->profile->n_nodes + 1, sizeof(*numbers));

	for (size_t i = 0; numbers && i < flame->tree.n_order; i++)
		numbers[flame->tree.order[i]] = i;
	return numbers;
}

static int put_diff(const struct flame *flame, const struct diff *diff, FILE *out)
{
	uint32_t *numbers = number_nodes(flame);

	if (!numbers)
		return -ENOMEM;
	for (int side = 0; side < DIFF_SIDES; side++)
		put_side(flame, diff, side, out);
	fputs(",\n\"shares\":[", out);
	for (int side = 0; side < DIFF_SIDES; side++) {
		fputs(side ? ",\n\"" : "\"", out);
		put_shares(&diff->sides[side], numbers, out);
		fputs("\"", out);
	}
	fputs("]", out);
	free(numbers);
	return 0;
}

/* Writes one number of each node. @at is its offset in the node. */
static void put_numbers(const struct flame *flame, const char *name, size_t at, FILE *out)
{
	fprintf(out, ",\n\"%s\":\"", name);
	for (size_t i = 0; i < flame->tree.n_order; i++) {
		const struct profile_node *node = &flame->profile->nodes[flame->tree.order[i]];
		uint64_t number;

		memcpy(&number, (const char *)node + at, sizeof(number));
		put_packed(out, number);
	}
	fputs("\"", out);
}

/* Returns true if the profile has the numbers of samples of its nodes. */
static bool has_samples(const struct profile *profile)
{
	for (size_t i = 0; i < profile->n_nodes; i++)
		if (profile->nodes[i].samples)
			return true;
	return false;
}

static void put_notes(const struct profile *profile, FILE *out)
{
	char notes[OUTPUT_NOTES_MAX][OUTPUT_NOTE_BYTES];
	size_t n = output__notes(profile, notes);

	fputs(",\n\"notes\":[", out);
	for (size_t i = 0; i < n; i++) {
		fputs(i ? "," : "", out);
		escape__json(out, notes[i]);
	}
	fprintf(out, "],\n\"group\":%u", profile->group_kind);
}

/* Writes the numbers of the whole profile. */
static void put_facts(const struct profile *profile, uint64_t samples, FILE *out)
{
	fputs(",\n\"event\":", out);
	escape__json(out, flame__event(profile));
	fprintf(out, ",\n\"own\":\"%s\",\n\"samples\":", code_rules__own_title(profile));
	output__number(out, samples);
	fputs(",\n\"frequency\":", out);
	output__number(out, min_of(profile->frequency_hz, 1e9));
	fputs(",\n\"idle\":[", out);
	output__number(out, profile->idle.weight);
	putc_unlocked(',', out);
	output__number(out, profile->idle.whole);
	fprintf(out, ",%u]", profile->idle.threads);
}

static void put_losses(const struct profile *profile, FILE *out)
{
	fputs(",\n\"losses\":[", out);
	for (size_t i = 0; i < profile->n_losses; i++) {
		fputs(i ? ",[" : "[", out);
		escape__json(out, profile->losses[i].name);
		fputs(",", out);
		output__number(out, profile->losses[i].count);
		fputs("]", out);
	}
	fputs("]", out);
}

static void put_frames(const struct flame *flame, FILE *out)
{
	const struct profile *profile = flame->profile;
	size_t i;

	fputs(",\n\"kinds\":[", out);
	for (i = 0; i < profile->n_kinds; i++) {
		fputs(i ? ",[" : "[", out);
		escape__json(out, profile->kinds[i].name);
		fprintf(out, ",%zu,%d]", flame__colour(profile, i), profile->kinds[i].label);
	}
	fputs("],\n\"strings\":[", out);
	for (i = 0; i < strtab__count(flame->strings); i++) {
		fputs_unlocked(i ? ",\n" : "", out);
		escape__json(out, strtab__get(flame->strings, i));
	}
	fputs("],\n\"frames\":[", out);
	for (i = 0; i < profile->n_frames; i++) {
		uint32_t number = flame->by_rank[i];
		const struct profile_frame *frame = &profile->frames[number];

		fprintf(out, "%s%u,%u,%u,%u,%u,%u,%u", i ? ",\n" : "\n", flame->labels[number],
			flame->files[number], frame->line, frame->kind, flame->libraries[number],
			frame->role, flame->names[number]);
	}
	fputs("]", out);
}

/* Writes the numbers of the inferred frames, if there are any. */
static void put_inferred(const struct flame *flame, FILE *out)
{
	const struct profile *profile = flame->profile;
	bool any = false;

	for (size_t i = 0; i < profile->n_frames; i++) {
		if (!profile->frames[flame->by_rank[i]].inferred)
			continue;
		fputs(any ? "" : ",\n\"inferred\":\"", out);
		put_packed(out, i);
		any = true;
	}
	fputs(any ? "\"" : "", out);
}

/* Writes for each frame the number of its code, and of the instruction in that code. */
static void put_places(const struct flame *flame, const struct output_opts *opts, FILE *out)
{
	const struct profile *profile = flame->profile;

	if (!opts->n_codes)
		return;
	fputs(",\n\"places\":\"", out);
	for (size_t i = 0; i < profile->n_frames; i++) {
		uint32_t row = 0;

		put_packed(out, output__find_code(opts->codes, opts->n_codes, profile,
						  &profile->frames[flame->by_rank[i]], &row));
		put_packed(out, row);
	}
	fputs("\"", out);
}

/* Writes the cells as one text, as there are many: flame_times.js. */
static int put_times(const struct flame *flame, FILE *out)
{
	const struct profile *profile = flame->profile;
	uint32_t *numbers;
	uint64_t column = 0;
	size_t i;

	if (!profile->n_cells)
		return 0;
	numbers = number_nodes(flame);
	if (!numbers)
		return -ENOMEM;
	fputs(",\n\"threads\":[", out);
	for (i = 0; i < profile->n_threads; i++) {
		const struct profile_thread *thread = &profile->threads[i];
		char title[TITLE_BYTES];

		fprintf(out, "%s[%u,", i ? ",\n" : "\n", thread->pid);
		escape__json(out, title__of(thread->process, thread->command, title));
		fprintf(out, ",%u,", thread->tid);
		escape__json(out, thread->pid != thread->tid
					  ? thread->name
					  : title__of_thread(thread->name, thread->process,
							     thread->command, title));
		if (*thread->container) {
			putc_unlocked(',', out);
			escape__json(out, thread->container);
		}
		putc_unlocked(']', out);
	}
	fputs("],\n\"times\":{\"width\":", out);
	output__number(out, profile->column_ns);
	fprintf(out, ",\"columns\":%" PRIu64 ",\"cells\":\"", profile->n_columns);
	for (i = 0; i < profile->n_cells; i++) {
		const struct profile_cell *cell = &profile->cells[i];
		const uint64_t row[] = { cell->column - column, cell->thread, numbers[cell->node],
					 cell->state, cell->weight };

		for (size_t at = 0; at < ARRAY_SIZE(row); at++)
			put_packed(out, row[at]);
		column = cell->column;
	}
	fputs("\"}", out);
	free(numbers);
	return 0;
}

static void put_summary(const struct profile *profile, const struct diff *diff, FILE *out)
{
	const struct profile *of = diff ? diff->sides[DIFF_NEW].profile : profile;
	char summary[OUTPUT_SUMMARY_BYTES], old[OUTPUT_SUMMARY_BYTES],
		both[3 * OUTPUT_SUMMARY_BYTES];

	output__summary(of, summary, sizeof(summary));
	if (diff) {
		output__summary(diff->sides[DIFF_OLD].profile, old, sizeof(old));
		snprintf(both, sizeof(both), "old: %s; new: %s", old, summary);
	}
	fputs(",\n\"summary\":", out);
	escape__json(out, diff ? both : summary);
	fputs(",\n\"started\":", out);
	escape__json(out, of->started ? of->started : "");
	fputs(",\n\"host\":", out);
	escape__json(out, of->host ? of->host : "");
}

/* Writes the data in the format that flame_data.js describes. */
int flame__put_data(const struct flame *flame, const struct output_opts *opts, FILE *out)
{
	const struct profile *profile = flame->profile;
	const struct diff *diff = opts->diff;
	uint64_t samples = profile->samples;

	if (diff)
		samples = diff->sides[DIFF_OLD].profile->samples +
			  diff->sides[DIFF_NEW].profile->samples;
	fputs("{\"target\":", out);
	escape__json(out, flame__target(profile));
	put_summary(profile, diff, out);
	fputs(",\n\"unit\":", out);
	escape__json(out, profile__unit(profile));
	fprintf(out, ",\n\"mode\":\"%s\"", frames__name(opts->frames));
	fprintf(out, ",\n\"joined\":%d", opts->joins_lines);
	put_facts(profile, samples, out);
	put_notes(profile, out);
	put_losses(profile, out);
	put_frames(flame, out);
	put_inferred(flame, out);
	put_places(flame, opts, out);
	fputs(",\n\"nodes\":\"", out);
	put_tree(flame, out);
	fputs("\"", out);
	if (profile->counts_calls)
		put_numbers(flame, "calls", offsetof(struct profile_node, calls), out);
	if (profile->unit != PROFILE_SAMPLES && has_samples(profile))
		put_numbers(flame, "counts", offsetof(struct profile_node, samples), out);
	if (profile__mixes(profile)) {
		put_numbers(flame, "waiting", offsetof(struct profile_node, waiting), out);
		put_numbers(flame, "preempted", offsetof(struct profile_node, preempted), out);
	}
	if ((diff && put_diff(flame, diff, out)) || put_times(flame, out))
		return -ENOMEM;
	fputs("}\n", out);
	return 0;
}
