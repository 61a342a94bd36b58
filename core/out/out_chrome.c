// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/title.h"
#include "core/base/util.h"
#include "core/out/out_tracks.h"

/* The "Trace Event Format" of Chrome's tracing, JSON object form, which Perfetto reads. The slice
 * of a callee begins (B) inside that of its caller and ends (E) before it. A sample is a set of
 * slices that end when it was taken and are as long as its value. Consecutive samples share the
 * slices of their common calls. Counted calls have sums and no instants, so that each path of calls
 * is one slice, as long as all its calls together. Tracks are numbered, as two events of one thread
 * may not share one. */

#define STEP_NS 1000 /* ns; longest slice whose value is not a time */

struct chrome {
	const struct output_opts *opts;
	FILE *out;
	uint32_t *path; /* nodes of the slices that are open, root first */
	size_t n_open;
	size_t n_tracks;
	bool begun;	/* a trace event was written */
	uint32_t pid;	/* pid of the present track */
	uint64_t value; /* value of the present sample, if it is not a time; otherwise 0 */
};

static void begin_event(struct chrome *chrome, char phase, uint32_t pid)
{
	fprintf(chrome->out, "%s{\"ph\":\"%c\",\"pid\":%u,\"tid\":%zu",
		chrome->begun ? ",\n" : "\n", phase, pid, chrome->n_tracks);
	chrome->begun = true;
}

static bool is_time(const struct out_tracks *tracks)
{
	return !strcmp(tracks->value.unit, "nanoseconds");
}

/* Writes a time in microseconds, with all digits. In sums of values that are not times, each unit
 * is one microsecond. */
static void put_time(struct chrome *chrome, const struct out_tracks *tracks, uint64_t now)
{
	if (!is_time(tracks) && !tracks->instants)
		fprintf(chrome->out, ",\"ts\":%" PRIu64, now);
	else
		fprintf(chrome->out, ",\"ts\":%" PRIu64 ".%03" PRIu64, now / 1000, now % 1000);
}

static void put_name(struct chrome *chrome, const char *what, const char *name)
{
	begin_event(chrome, 'M', chrome->pid);
	fprintf(chrome->out, ",\"name\":\"%s\",\"args\":{\"name\":", what);
	escape__json(chrome->out, name);
	fputs("}}", chrome->out);
}

/* Opens the slice of @node. @last is set for the innermost slice of its sample. */
static int open_slice(struct chrome *chrome, const struct out_tracks *tracks, uint32_t node,
		      bool last, uint64_t now)
{
	const struct profile *profile = tracks->profile;
	const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
	char *label = output__label(profile, frame, chrome->opts->annotate);

	if (!label)
		return -ENOMEM;
	begin_event(chrome, 'B', chrome->pid);
	put_time(chrome, tracks, now);
	fputs(",\"name\":", chrome->out);
	escape__json(chrome->out, label);
	fputs(",\"cat\":", chrome->out);
	escape__json(chrome->out, profile->kinds[frame->kind].name);
	if (profile->counts_calls)
		fprintf(chrome->out, ",\"args\":{\"calls\":%" PRIu64 "}",
			profile->nodes[node].calls);
	else if (last && chrome->value)
		fprintf(chrome->out, ",\"args\":{\"value\":%" PRIu64 "}", chrome->value);
	putc_unlocked('}', chrome->out);
	free(label);
	chrome->path[chrome->n_open++] = node;
	return 0;
}

static void close_slices(struct chrome *chrome, const struct out_tracks *tracks, size_t n,
			 uint64_t now)
{
	for (; chrome->n_open > n; chrome->n_open--) {
		begin_event(chrome, 'E', chrome->pid);
		put_time(chrome, tracks, now);
		putc_unlocked('}', chrome->out);
	}
}

/* Closes the slices that the node's stack does not contain, and opens those that are missing. */
static int switch_to(struct chrome *chrome, struct out_tracks *tracks, uint32_t node, uint64_t now)
{
	const struct profile_node *nodes = tracks->profile->nodes;
	uint32_t *stack = tracks->stack;
	size_t n = tracks->tree.depth[node], same = 0;
	int ret = 0;

	for (size_t i = n; i-- > 0; node = nodes[node].parent)
		stack[i] = node;
	while (same < n && same < chrome->n_open && chrome->path[same] == stack[same])
		same++;
	close_slices(chrome, tracks, same, now);
	for (; !ret && same < n; same++)
		ret = open_slice(chrome, tracks, stack[same], same + 1 == n, now);
	return ret;
}

static int put_sums(struct chrome *chrome, struct out_tracks *tracks, size_t first, size_t end)
{
	uint64_t now = 0;
	int ret = 0;

	for (size_t i = first; !ret && i < end; i++) {
		ret = switch_to(chrome, tracks, tracks->parts[i].node, now);
		if (__builtin_add_overflow(now, out_tracks__value(tracks, i), &now))
			now = UINT64_MAX;
	}
	close_slices(chrome, tracks, 0, now);
	return ret;
}

/* Returns the time when the sample that ends at @end began, not before the end of the previous one.
 * If @follows is set, a gap of less than half a tick of the clock is closed. */
static uint64_t begin_of(const struct out_tracks *tracks, uint64_t end, uint64_t value,
			 uint64_t last_end, bool follows)
{
	uint64_t begin = end > value ? end - value : 0;

	return begin < last_end + (follows ? tracks->period_ns / 2 : 0) ? last_end : begin;
}

static int put_times(struct chrome *chrome, struct out_tracks *tracks, size_t first, size_t end)
{
	uint64_t last_end = 0;
	int ret = 0;

	for (size_t i = first; !ret && i < end; i++) {
		uint64_t now = tracks->parts[i].time_ns, value = out_tracks__value(tracks, i);
		uint64_t begin = begin_of(tracks, now, value, last_end, i > first);

		if (begin > last_end)
			close_slices(chrome, tracks, 0, last_end);
		ret = switch_to(chrome, tracks, tracks->parts[i].node, begin);
		last_end = now;
	}
	close_slices(chrome, tracks, 0, last_end);
	return ret;
}

/* Writes a set of slices for each sample, with its value. They end before those of the next sample
 * begin. */
static int put_occurrences(struct chrome *chrome, struct out_tracks *tracks, size_t first,
			   size_t end)
{
	int ret = 0;

	for (size_t i = first; !ret && i < end; i++) {
		uint64_t now = tracks->parts[i].time_ns;

		chrome->value = out_tracks__value(tracks, i);
		ret = switch_to(chrome, tracks, tracks->parts[i].node, now);
		close_slices(chrome, tracks, 0,
			     i + 1 < end ? min_of(now + STEP_NS, tracks->parts[i + 1].time_ns)
					 : now + STEP_NS);
	}
	chrome->value = 0;
	return ret;
}

static int put_track(struct chrome *chrome, struct out_tracks *tracks, size_t first, size_t end)
{
	const struct profile_thread *thread = out_tracks__thread(tracks, first);
	char *title = out_tracks__title(tracks, thread), process[TITLE_BYTES];

	if (!title)
		return -ENOMEM;
	chrome->n_tracks++;
	chrome->pid = thread ? thread->pid : 0;
	put_name(chrome, "process_name",
		 thread && thread->process ? title__of(thread->process, thread->command, process)
					   : "");
	put_name(chrome, "thread_name", title);
	free(title);
	if (!tracks->instants)
		return put_sums(chrome, tracks, first, end);
	return is_time(tracks) ? put_times(chrome, tracks, first, end)
			       : put_occurrences(chrome, tracks, first, end);
}

static int put_event(struct chrome *chrome, const struct profile *profile)
{
	struct out_tracks tracks;
	size_t at = 0, end;
	int ret = out_tracks__init(&tracks, profile);

	free(chrome->path);
	chrome->path = ret ? NULL : calloc(tracks.tree.depth_max + 1, sizeof(*chrome->path));
	if (!chrome->path)
		ret = -ENOMEM;
	for (; !ret && at < tracks.n_parts; at = end) {
		end = out_tracks__end(&tracks, at);
		ret = put_track(chrome, &tracks, at, end);
	}
	out_tracks__done(&tracks);
	return ret;
}

static void put_summary(const struct profile *profile, FILE *out)
{
	char summary[OUTPUT_SUMMARY_BYTES];

	output__summary(profile, summary, sizeof(summary));
	escape__json(out, summary);
}

int output__chrome(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct chrome chrome = { .opts = opts, .out = out };
	int ret;

	fprintf(out,
		"{\"displayTimeUnit\":\"ns\",\"otherData\":{\"by\":\"braid\",\"times\":\"%s\","
		"\"target\":",
		profile->instants
			? "since the first sample; a sample ends when it was taken"
			: "sums: a slice is the sum of all calls on its path, not their time");
	escape__json(out, profile->target && *profile->target ? profile->target : "");
	fputs(",\"recorded\":", out);
	put_summary(profile, out);
	fputs("},\n\"traceEvents\":[", out);
	ret = put_event(&chrome, profile);
	for (size_t i = 0; !ret && i < opts->n_others; i++)
		ret = put_event(&chrome, opts->others[i]);
	fputs("]}\n", out);
	free(chrome.path);
	return ret ? ret : output__finish(out);
}
