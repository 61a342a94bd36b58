// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/title.h"
#include "core/base/util.h"
#include "core/out/out_rows.h"
#include "core/out/out_tracks.h"

/* The processed format of github.com/firefox-devtools/profiler, docs-developer/CHANGELOG-formats.md
 * and src/types/profile.ts at version 70; viewers convert versions older than their own. Tables are
 * written by column. All threads share the tables of stacks, frames and functions. So the threads
 * come first in the file, and the tables are filled meanwhile. */

#define VERSION	      70
#define GECKO_VERSION 30
#define NONE	      UINT32_MAX

#define NS_PER_MS 1e6
#define STEP_MS	  0.001 /* ms between samples whose values are not times */

struct column {
	uint32_t *at;
	size_t n, cap;
};

struct firefox {
	const struct output_opts *opts;
	FILE *out;
	struct strtab *strings, *categories, *resources, *sources; /* ids; category 0 is grey */
	struct column func_name, func_resource, func_source;
	struct column frame_func, frame_category, frame_line;
	struct column stack_frame, stack_offset; /* distance back to the parent; 0: root */
	uint32_t *stack_of;			 /* by node of the present event */
	size_t n_threads;
};

static int append(struct column *column, uint32_t value)
{
	if (array__reserve(&column->at, &column->cap, column->n + 1, sizeof(*column->at)))
		return -ENOMEM;
	column->at[column->n++] = value;
	return 0;
}

/* ---- tables ---- */

/* Returns the entry of a text in *@ret. The text "" has no entry: NONE. */
static int entry_of(struct strtab *table, const char *text, uint32_t *ret)
{
	uint32_t id;

	*ret = NONE;
	if (!*text)
		return 0;
	if (strtab__intern(table, text, &id))
		return -ENOMEM;
	*ret = id - 1;
	return 0;
}

static int add_func(struct firefox *firefox, const struct profile *profile,
		    const struct profile_frame *frame)
{
	char *text = out_tracks__name(profile, frame, firefox->opts->annotate);
	uint32_t name, resource, source;
	int ret = text ? strtab__intern(firefox->strings, text, &name) : -ENOMEM;

	free(text);
	if (!ret)
		ret = entry_of(firefox->resources, strtab__get(profile->strings, frame->library),
			       &resource);
	if (!ret)
		ret = entry_of(firefox->sources, strtab__get(profile->strings, frame->file),
			       &source);
	if (!ret)
		ret = append(&firefox->func_name, name);
	if (!ret)
		ret = append(&firefox->func_resource, resource);
	return ret ? ret : append(&firefox->func_source, source);
}

/* Adds a frame. @funcs: by row of @rows, number of the function + 1. */
static int add_frame(struct firefox *firefox, const struct out_rows *rows, uint32_t number,
		     uint32_t *funcs)
{
	const struct profile *profile = rows->profile;
	const struct profile_frame *frame = &profile->frames[number];
	uint32_t *func = &funcs[rows->row_of[number]], category;
	int ret = 0;

	if (!*func) {
		ret = add_func(firefox, profile, frame);
		*func = firefox->func_name.n;
	}
	if (!ret)
		ret = strtab__intern(firefox->categories, profile->kinds[frame->kind].name,
				     &category);
	if (!ret)
		ret = append(&firefox->frame_func, *func - 1);
	if (!ret)
		ret = append(&firefox->frame_category, category);
	return ret ? ret : append(&firefox->frame_line, frame->line ? frame->line : NONE);
}

/* Adds the stacks in the order in which they are first shown. So the file does not depend on the
 * order in which the profile was built. Parents precede their children. */
static int add_stacks(struct firefox *firefox, const struct out_tree *tree,
		      const struct out_rows *rows)
{
	const struct profile *profile = rows->profile;
	uint32_t *frames = calloc(profile->n_frames + 1, sizeof(*frames)); /* numbers + 1 */
	uint32_t *funcs = calloc(rows->n + 1, sizeof(*funcs));
	int ret = frames && funcs ? 0 : -ENOMEM;

	for (size_t i = 1; !ret && i < tree->n_order; i++) {
		uint32_t node = tree->order[i], parent = profile->nodes[node].parent;
		uint32_t frame = profile->nodes[node].frame, at = firefox->stack_frame.n;

		if (!frames[frame]) {
			ret = add_frame(firefox, rows, frame, funcs);
			frames[frame] = firefox->frame_func.n;
		}
		firefox->stack_of[node] = at;
		if (!ret)
			ret = append(&firefox->stack_frame, frames[frame] - 1);
		if (!ret)
			ret = append(&firefox->stack_offset,
				     parent ? at - firefox->stack_of[parent] : 0);
	}
	free(frames);
	free(funcs);
	return ret;
}

/* ---- threads ---- */

enum weights { WEIGHTS_TIME, WEIGHTS_BYTES, WEIGHTS_OTHER };

static enum weights weights_of(const struct out_tracks *tracks)
{
	if (!strcmp(tracks->value.unit, "nanoseconds"))
		return WEIGHTS_TIME;
	return strcmp(tracks->value.unit, "bytes") ? WEIGHTS_OTHER : WEIGHTS_BYTES;
}

static void put_weight(const struct out_tracks *tracks, size_t part, FILE *out)
{
	uint64_t value = out_tracks__value(tracks, part);

	if (weights_of(tracks) == WEIGHTS_TIME)
		fprintf(out, "%" PRIu64 ".%06" PRIu64, value / 1000000, value % 1000000);
	else
		output__number(out, value);
}

static void put_samples(struct firefox *firefox, struct out_tracks *tracks, size_t first,
			size_t end)
{
	static const char *const types[] = { "tracing-ms", "bytes", "samples" };
	enum weights weights = weights_of(tracks);
	FILE *out = firefox->out;
	double now = 0;

	fprintf(out, "\"samples\":{\"length\":%zu,\"weightType\":\"%s\",\"stack\":[", end - first,
		types[weights]);
	for (size_t i = first; i < end; i++) {
		uint32_t node = tracks->parts[i].node;

		fputs(i > first ? "," : "", out);
		if (node)
			output__number(out, firefox->stack_of[node]);
		else
			fputs("null", out);
	}
	fputs("],\n\"time\":[", out);
	for (size_t i = first; i < end; i++) {
		uint64_t ns = tracks->parts[i].time_ns;

		fputs(i > first ? "," : "", out);
		if (tracks->instants)
			fprintf(out, "%" PRIu64 ".%06" PRIu64, ns / 1000000, ns % 1000000);
		else
			fprintf(out, "%.6f", now);
		now += weights == WEIGHTS_TIME ? out_tracks__value(tracks, i) / NS_PER_MS : STEP_MS;
	}
	fputs("],\n\"weight\":[", out);
	for (size_t i = first; i < end; i++) {
		fputs(i > first ? "," : "", out);
		put_weight(tracks, i, out);
	}
	fputs("]}", out);
}

/* Writes the name of a thread, for events other than the first with the event. */
static int put_thread_name(const struct out_tracks *tracks, const struct profile_thread *thread,
			   bool main_event, FILE *out)
{
	const char *name = thread && thread->name ? thread->name : "";
	char *text;

	if (asprintf(&text,
		     main_event && *name ? "%s%.0s"
		     : *name		 ? "%s (%s)"
					 : "%s%s",
		     name, tracks->value.event) < 0)
		return -ENOMEM;
	escape__json(out, text);
	free(text);
	return 0;
}

static int put_track(struct firefox *firefox, struct out_tracks *tracks, size_t first, size_t end,
		     bool main_event)
{
	const struct profile_thread *thread =
		first < end ? out_tracks__thread(tracks, first) : NULL;
	bool leads = main_event && thread && thread->pid == thread->tid;
	FILE *out = firefox->out;
	char process[TITLE_BYTES];
	int ret;

	fputs(firefox->n_threads++ ? ",\n{\"name\":" : "\n{\"name\":", out);
	ret = put_thread_name(tracks, thread, main_event, out);
	fputs(",\"processName\":", out);
	escape__json(out, thread && thread->process
				  ? title__of(thread->process, thread->command, process)
				  : "");
	fprintf(out,
		",\"pid\":\"%u\",\"tid\":%u,\"isMainThread\":%s,\"processType\":\"default\","
		"\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,"
		"\"unregisterTime\":null,\"pausedRanges\":[],\n"
		"\"markers\":{\"length\":0,\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],"
		"\"phase\":[],\"category\":[]},\n",
		thread ? thread->pid : 0, thread ? thread->tid : 0, leads ? "true" : "false");
	put_samples(firefox, tracks, first, end);
	putc_unlocked('}', out);
	return ret;
}

static int put_event(struct firefox *firefox, const struct profile *profile, bool main_event)
{
	struct out_rows rows = {};
	struct out_tracks tracks;
	size_t at = 0, end;
	int ret = out_tracks__init(&tracks, profile);

	if (!ret)
		ret = out_rows__init(&rows, profile, OUTPUT_FUNCTIONS, false);
	free(firefox->stack_of);
	firefox->stack_of = calloc(profile->n_nodes, sizeof(*firefox->stack_of));
	if (!ret)
		ret = firefox->stack_of ? add_stacks(firefox, &tracks.tree, &rows) : -ENOMEM;
	/* Viewers reject a file without threads. */
	if (!ret && !tracks.n_parts && main_event)
		ret = put_track(firefox, &tracks, 0, 0, true);
	for (; !ret && at < tracks.n_parts; at = end) {
		end = out_tracks__end(&tracks, at);
		ret = put_track(firefox, &tracks, at, end, main_event);
	}
	out_rows__done(&rows);
	out_tracks__done(&tracks);
	return ret;
}

/* ---- shared ---- */

static void put_column(struct firefox *firefox, const char *name, const struct column *column,
		       const char *none)
{
	fprintf(firefox->out, ",\n\"%s\":[", name);
	for (size_t i = 0; i < column->n; i++) {
		fputs(i ? "," : "", firefox->out);
		if (column->at[i] == NONE)
			fputs(none, firefox->out);
		else
			output__number(firefox->out, column->at[i]);
	}
	putc_unlocked(']', firefox->out);
}

static void put_constant(struct firefox *firefox, const char *name, const char *value, size_t n)
{
	fprintf(firefox->out, ",\n\"%s\":[", name);
	for (size_t i = 0; i < n; i++) {
		fputs(i ? "," : "", firefox->out);
		fputs(value, firefox->out);
	}
	putc_unlocked(']', firefox->out);
}

/* Writes the texts of a table as a column of strings, without "". */
static int put_names(struct firefox *firefox, const char *name, const struct strtab *table)
{
	struct column names = {};
	int ret = 0;

	for (uint32_t i = 1; !ret && i < strtab__count(table); i++) {
		uint32_t id;

		ret = strtab__intern(firefox->strings, strtab__get(table, i), &id);
		if (!ret)
			ret = append(&names, id);
	}
	put_column(firefox, name, &names, "null");
	free(names.at);
	return ret;
}

static int put_shared(struct firefox *firefox)
{
	size_t frames = firefox->frame_func.n, funcs = firefox->func_name.n;
	size_t sources = strtab__count(firefox->sources) - 1;
	size_t resources = strtab__count(firefox->resources) - 1;
	FILE *out = firefox->out;
	int ret;

	fprintf(out, "\"shared\":{\"stackTable\":{\"length\":%zu", firefox->stack_frame.n);
	put_column(firefox, "frame", &firefox->stack_frame, "null");
	put_column(firefox, "prefixOffset", &firefox->stack_offset, "null");
	fprintf(out, "},\n\"frameTable\":{\"length\":%zu", frames);
	put_column(firefox, "func", &firefox->frame_func, "null");
	put_column(firefox, "category", &firefox->frame_category, "null");
	put_column(firefox, "line", &firefox->frame_line, "null");
	put_constant(firefox, "subcategory", "0", frames);
	put_constant(firefox, "address", "-1", frames);
	put_constant(firefox, "lib", "-1", frames);
	put_constant(firefox, "inlineDepth", "0", frames);
	put_constant(firefox, "nativeSymbol", "null", frames);
	put_constant(firefox, "innerWindowID", "0", frames);
	put_constant(firefox, "column", "null", frames);
	put_constant(firefox, "originalLocation", "null", frames);
	fprintf(out, "},\n\"funcTable\":{\"length\":%zu", funcs);
	put_column(firefox, "name", &firefox->func_name, "null");
	put_column(firefox, "resource", &firefox->func_resource, "-1");
	put_column(firefox, "source", &firefox->func_source, "null");
	put_constant(firefox, "isJS", "false", funcs);
	put_constant(firefox, "relevantForJS", "false", funcs);
	put_constant(firefox, "lineNumber", "null", funcs);
	put_constant(firefox, "columnNumber", "null", funcs);
	put_constant(firefox, "originalLocation", "null", funcs);
	fprintf(out, "},\n\"resourceTable\":{\"length\":%zu", resources);
	ret = put_names(firefox, "name", firefox->resources);
	put_constant(firefox, "host", "null", resources);
	put_constant(firefox, "type", "1", resources); /* library */
	fprintf(out, "},\n\"sources\":{\"length\":%zu", sources);
	if (!ret)
		ret = put_names(firefox, "filename", firefox->sources);
	put_constant(firefox, "id", "null", sources);
	put_constant(firefox, "startLine", "1", sources);
	put_constant(firefox, "startColumn", "1", sources);
	put_constant(firefox, "sourceMapURL", "null", sources);
	put_constant(firefox, "content", "null", sources);
	fputs("},\n\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],"
	      "\"functionSize\":[]},\n\"sourceLocationTable\":{\"length\":0,\"source\":[],"
	      "\"line\":[],\"column\":[]},\n\"stringArray\":[",
	      out);
	for (uint32_t i = 0; i < strtab__count(firefox->strings); i++) {
		fputs(i ? ",\n" : "\n", out);
		escape__json(out, strtab__get(firefox->strings, i));
	}
	fputs("]}", out);
	return ret;
}

/* ---- meta ---- */

/* Returns the colour of a category. The format has a fixed set of colours, of which those of the
 * page are used as far as possible. */
static const char *colour_of(size_t category)
{
	static const char *const colours[] = { "grey",	  "orange",   "yellow",	  "brown",
					       "green",	  "blue",     "purple",	  "red",
					       "magenta", "lightred", "lightblue" };

	return colours[category ? 1 + (category - 1) % (ARRAY_SIZE(colours) - 1) : 0];
}

static int put_categories(struct firefox *firefox, const struct profile *profile)
{
	for (size_t i = 0; i < profile->n_kinds; i++) {
		uint32_t id, before = strtab__count(firefox->categories);

		if (strtab__intern(firefox->categories, profile->kinds[i].name, &id))
			return -ENOMEM;
		if (strtab__count(firefox->categories) == before)
			continue;
		fputs(",{\"name\":", firefox->out);
		escape__json(firefox->out, profile->kinds[i].name);
		fprintf(firefox->out, ",\"color\":\"%s\",\"subcategories\":[\"Other\"]}",
			colour_of(id));
	}
	return 0;
}

static void put_entry(FILE *out, const char *label, const char *text, bool first)
{
	fputs(first ? "" : ",", out);
	fputs("{\"label\":", out);
	escape__json(out, label);
	fputs(",\"format\":\"string\",\"value\":", out);
	escape__json(out, text);
	putc_unlocked('}', out);
}

static void put_notes(const struct profile *profile, FILE *out)
{
	char summary[OUTPUT_SUMMARY_BYTES], notes[OUTPUT_NOTES_MAX][OUTPUT_NOTE_BYTES], count[32];
	size_t n = output__notes(profile, notes);

	output__summary(profile, summary, sizeof(summary));
	put_entry(out, "Recorded", summary, false);
	for (size_t i = 0; i < n; i++)
		put_entry(out, "Of that", notes[i], false);
	for (size_t i = 0; i < profile->n_losses; i++) {
		snprintf(count, sizeof(count), "%" PRIu64, profile->losses[i].count);
		put_entry(out, profile->losses[i].name, count, false);
	}
}

static int put_meta(struct firefox *firefox, const struct profile *profile)
{
	uint64_t period_ns = pprof_values__period_ns(profile);
	FILE *out = firefox->out;
	int ret;

	fputs("{\"meta\":{\"product\":", out);
	escape__json(out, profile->target && *profile->target ? profile->target : "braid");
	fprintf(out,
		",\"importedFrom\":\"braid\",\"preprocessedProfileVersion\":%d,\"version\":%d,"
		"\"interval\":%.6f,\"startTime\":0,\"processType\":0,\"stackwalk\":1,"
		"\"debug\":false,\"symbolicated\":true,\"markerSchema\":[],"
		"\"usesOnlyOneStackType\":true,\"sourceCodeIsNotOnSearchfox\":true,\n"
		"\"categories\":[{\"name\":\"Other\",\"color\":\"grey\","
		"\"subcategories\":[\"Other\"]}",
		VERSION, GECKO_VERSION, period_ns ? period_ns / NS_PER_MS : 1.0);
	ret = put_categories(firefox, profile);
	for (size_t i = 0; !ret && i < firefox->opts->n_others; i++)
		ret = put_categories(firefox, firefox->opts->others[i]);
	fputs("],\n\"extra\":[{\"label\":\"braid\",\"entries\":[", out);
	put_entry(out, "Times",
		  profile->instants ? "since the first sample; of intervals, their end"
				    : "stacks are sorted by name, each as long as its value; not "
				      "in order of time",
		  true);
	put_notes(profile, out);
	for (size_t i = 0; i < firefox->opts->n_others; i++)
		put_notes(firefox->opts->others[i], out);
	fputs("]}]},\n\"libs\":[],\n\"threads\":[", out);
	return ret;
}

static void firefox_done(struct firefox *firefox)
{
	strtab__free(firefox->strings);
	strtab__free(firefox->categories);
	strtab__free(firefox->resources);
	strtab__free(firefox->sources);
	free(firefox->func_name.at);
	free(firefox->func_resource.at);
	free(firefox->func_source.at);
	free(firefox->frame_func.at);
	free(firefox->frame_category.at);
	free(firefox->frame_line.at);
	free(firefox->stack_frame.at);
	free(firefox->stack_offset.at);
	free(firefox->stack_of);
}

int output__firefox(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct firefox firefox = { .opts = opts,
				   .out = out,
				   .strings = strtab__new(),
				   .categories = strtab__new(),
				   .resources = strtab__new(),
				   .sources = strtab__new() };
	int ret = -ENOMEM;

	if (firefox.strings && firefox.categories && firefox.resources && firefox.sources)
		ret = put_meta(&firefox, profile);
	if (!ret)
		ret = put_event(&firefox, profile, true);
	for (size_t i = 0; !ret && i < opts->n_others; i++)
		ret = put_event(&firefox, opts->others[i], false);
	if (!ret) {
		fputs("],\n", out);
		ret = put_shared(&firefox);
		fputs("}\n", out);
	}
	firefox_done(&firefox);
	return ret ? ret : output__finish(out);
}
