// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/output.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/out/out_common.h"
#include "core/out/out_diff.h"
#include "core/out/out_groups.h"

/* A report for programs, described by docs/reference/report.schema.json. VERSION is incremented
 * when a member changes its meaning or is removed; new members do not change it. Every document has
 * all members, so that a reader needs no defaults.
 *
 * The nodes of the tree are a list in which each node refers to its parent. JSON readers do not
 * accept a nested tree of 2,048 levels. */

#define VERSION 1

static void put_text(FILE *out, const char *name, const char *text)
{
	fprintf(out, "\"%s\":", name);
	escape__json(out, text ? text : "");
}

/* JSON has no infinity and no NaN. */
static void put_double(FILE *out, const char *name, double number)
{
	fprintf(out, "\"%s\":%.17g", name, isfinite(number) ? number : 0);
}

/* Writes the members of @profile that are numbers or texts, between braces. */
static void put_recording(const struct profile *profile, FILE *out)
{
	const struct profile_evidence *evidence = &profile->evidence;
	char notes[OUTPUT_NOTES_MAX][OUTPUT_NOTE_BYTES];
	size_t n = output__notes(profile, notes);

	putc('{', out);
	put_text(out, "target", profile->target);
	fputs(",", out);
	put_text(out, "event", profile->event ? profile->event : "cpu");
	fputs(",", out);
	put_text(out, "unit", profile__unit(profile));
	fputs(",", out);
	put_double(out, "duration_s", profile->duration_s);
	fputs(",", out);
	put_double(out, "frequency_hz", profile->frequency_hz);
	fprintf(out,
		",\n \"total\":%" PRIu64 ",\"waiting\":%" PRIu64 ",\"preempted\":%" PRIu64
		",\"samples\":%" PRIu64 ",\"occurrences\":%" PRIu64,
		profile->total, profile->waiting, profile->preempted, profile->samples,
		profile->occurrences);
	fprintf(out,
		",\n \"evidence\":{\"native_frames\":%" PRIu64
		",\"inferred_native_frames\":%" PRIu64 ",\"runtime_frames\":%" PRIu64
		",\"inferred_runtime_frames\":%" PRIu64 "}",
		evidence->natives, evidence->inferred_natives, evidence->runtimes,
		evidence->inferred_runtimes);
	fprintf(out, ",\n \"hidden_idle\":{\"value\":%" PRIu64 ",\"threads\":%u}",
		profile->idle.weight, profile->idle.threads);
	fprintf(out, ",\n \"unbroken_waits\":{\"value\":%" PRIu64 ",\"threads\":%u,\"hidden\":%s}",
		profile->unbroken.weight, profile->unbroken.threads,
		profile->unbroken.hidden ? "true" : "false");
	fputs(",\n \"lost\":[", out);
	for (size_t i = 0; i < profile->n_losses; i++) {
		fputs(i ? ",{" : "{", out);
		put_text(out, "reason", profile->losses[i].name);
		fprintf(out, ",\"count\":%" PRIu64 "}", profile->losses[i].count);
	}
	fputs("],\n \"notes\":[", out);
	for (size_t i = 0; i < n; i++) {
		fputs(i ? "," : "", out);
		escape__json(out, notes[i]);
	}
	fputs("]}", out);
}

/* ---- rows ---- */

static void put_row_key(const struct out_rows *of, uint32_t row, FILE *out)
{
	const struct profile *profile = of->profile;
	const struct out_row_key *key = &of->keys[row];
	bool functions = of->group == OUTPUT_FUNCTIONS;

	put_text(out, "name", row ? out_rows__name(of, row) : "[no stack]");
	fputs(",", out);
	put_text(out, "file", row && functions ? strtab__get(profile->strings, key->file) : "");
	fputs(",", out);
	put_text(out, "kind", row ? profile->kinds[key->kind].name : "");
}

/* Writes the members of a row. */
static void put_row_members(const struct out_rows *of, const struct out_row *row, FILE *out)
{
	put_row_key(of, row->number, out);
	fprintf(out,
		",\"self\":%" PRIu64 ",\"script\":%" PRIu64 ",\"total\":%" PRIu64
		",\"waiting\":%" PRIu64 ",\"preempted\":%" PRIu64 ",\"samples\":%" PRIu64
		",\"occurrences\":%" PRIu64 ",\"calls\":%" PRIu64,
		row->self, row->script, row->total, row->waiting, row->preempted, row->samples,
		row->occurrences, row->calls);
}

static void put_list(const struct out_list *list, FILE *out)
{
	fputs(",\n\"rows\":[", out);
	for (size_t i = 0; i < list->n_put; i++) {
		fputs(i ? ",\n {" : "\n {", out);
		put_row_members(&list->of, &list->rows[i], out);
		putc('}', out);
	}
	fputs("]", out);
}

static int put_groups(const struct out_list *list, const struct output_opts *opts, FILE *out)
{
	size_t n = min_of(out_groups__count(list), list->n_put);
	int ret = 0;

	fputs(",\n\"groups\":[", out);
	for (size_t i = 0; !ret && i < n; i++) {
		struct out_group group;

		ret = out_group__init(&group, list, &list->rows[i], opts, opts->rows);
		if (!ret) {
			fputs(i ? ",\n{" : "\n{", out);
			put_row_members(&list->of, &list->rows[i], out);
			put_list(&group.list, out);
			putc('}', out);
		}
		out_group__done(&group);
	}
	fputs("]", out);
	return ret;
}

static int put_rows(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct out_list list;
	int ret = out_list__init(&list, profile, opts);

	if (!ret)
		put_list(&list, out);
	if (!ret && profile->group_kind && opts->group == OUTPUT_FUNCTIONS)
		ret = put_groups(&list, opts, out);
	out_list__done(&list);
	return ret;
}

static void put_change(const struct diff_change *change, FILE *out)
{
	fputs(",", out);
	put_double(out, "old", change->old);
	fputs(",", out);
	put_double(out, "new", change->new);
	fputs(",", out);
	put_double(out, "standard_errors", change->errors);
	fputs(",", out);
	put_text(out, "verdict", out_diff__verdict(change));
	fprintf(out, ",\"appeared\":%s,\"vanished\":%s", change->appeared ? "true" : "false",
		change->vanished ? "true" : "false");
}

static int put_changes(const struct output_opts *opts, FILE *out)
{
	static const char *const measures[] = {
		[DIFF_SELF] = "self", [DIFF_TOTAL] = "total", [DIFF_SCRIPT] = "script"
	};
	struct out_diff_rows rows = {};
	int ret = out_diff_rows__init(&rows, opts);

	if (ret)
		goto out;
	fprintf(out, ",\n\"compared_by\":\"%s\",\n\"measure\":\"%s\",\n\"changes\":[",
		opts->diff->by_value ? "value" : "share", measures[rows.measure]);
	for (size_t i = 0; i < rows.n_put; i++) {
		fputs(i ? ",\n {" : "\n {", out);
		put_row_key(&rows.of, rows.sorted[i], out);
		put_change(&rows.changes[rows.sorted[i]], out);
		putc('}', out);
	}
	fputs("]", out);
out:
	out_diff_rows__done(&rows);
	return ret;
}

/* ---- the tree ---- */

static void put_frame(const struct profile *profile, const struct profile_frame *frame, FILE *out)
{
	putc('{', out);
	put_text(out, "name", strtab__get(profile->strings, frame->name));
	fputs(",", out);
	put_text(out, "file", strtab__get(profile->strings, frame->file));
	fprintf(out, ",\"line\":%u,", frame->line);
	put_text(out, "kind", profile->kinds[frame->kind].name);
	fputs(",", out);
	put_text(out, "library", strtab__get(profile->strings, frame->library));
	fprintf(out, ",\"inferred\":%s}", frame->inferred ? "true" : "false");
}

/* Numbers frames and nodes in the order of the tree. So the text does not depend on the order in
 * which the profile was built. @frames and @nodes: by number in the profile, 1 + the number in the
 * text. */
static void number_all(const struct profile *profile, const struct out_tree *tree, uint32_t *frames,
		       uint32_t *nodes, FILE *out)
{
	size_t n = 0;

	for (size_t i = 0; i < tree->n_order; i++) {
		uint32_t node = tree->order[i], frame = profile->nodes[node].frame;

		nodes[node] = i;
		if (!node || frames[frame])
			continue;
		fputs(n ? ",\n " : "\n ", out);
		put_frame(profile, &profile->frames[frame], out);
		frames[frame] = ++n;
	}
}

static int put_tree(const struct profile *profile, FILE *out)
{
	uint32_t *frames = calloc(profile->n_frames + 1, sizeof(*frames));
	uint32_t *nodes = calloc(profile->n_nodes, sizeof(*nodes));
	struct out_tree tree;
	int ret = frames && nodes ? out_tree__init(&tree, profile) : -ENOMEM;

	if (ret)
		goto out;
	fputs(",\n\"frames\":[", out);
	number_all(profile, &tree, frames, nodes, out);
	fputs("],\n\"nodes\":[", out);
	for (size_t i = 1; i < tree.n_order; i++) {
		uint32_t node = tree.order[i];
		const struct profile_node *at = &profile->nodes[node];

		fprintf(out,
			"%s{\"parent\":%d,\"frame\":%u,\"self\":%" PRIu64 ",\"total\":%" PRIu64
			",\"waiting\":%" PRIu64 ",\"preempted\":%" PRIu64 ",\"samples\":%" PRIu64
			",\"occurrences\":%" PRIu64 ",\"calls\":%" PRIu64 "}",
			i > 1 ? ",\n " : "\n ", (int)nodes[at->parent] - 1, frames[at->frame] - 1,
			at->self, tree.total[node], at->waiting, at->preempted, at->samples,
			at->occurrences, at->calls);
	}
	fputs("]", out);
	out_tree__done(&tree);
out:
	free(frames);
	free(nodes);
	return ret;
}

int output__json(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	int ret;

	fprintf(out, "{\"schema\":\"braid-%s\",\"version\":%d,\n", opts->diff ? "diff" : "report",
		VERSION);
	if (opts->diff) {
		fputs("\"old\":", out);
		put_recording(opts->diff->sides[DIFF_OLD].profile, out);
		fputs(",\n\"new\":", out);
		put_recording(opts->diff->sides[DIFF_NEW].profile, out);
		ret = put_changes(opts, out);
	} else {
		fputs("\"recording\":", out);
		put_recording(profile, out);
		ret = put_rows(profile, opts, out);
		if (!ret)
			ret = put_tree(profile, out);
	}
	fputs("}\n", out);
	return ret ? ret : output__finish(out);
}
