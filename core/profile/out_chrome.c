// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/profile/out_tracks.h"

/* The "Trace Event Format" of Chrome's tracing, JSON object form, which Perfetto reads: what is
 * called begins (B) inside its caller and ends (E) before it. A profile has sums and no instants,
 * so each path of calls is one slice, as long as all its calls were together. Tracks are numbered:
 * two events of one thread may not share one. */

struct chrome {
	const struct output_opts *opts;
	FILE *out;
	uint32_t *path; /* nodes of the slices that are open, root first */
	size_t n_open;
	size_t n_tracks;
	bool begun; /* a trace event has been written */
};

static void begin_event(struct chrome *chrome, char phase, uint32_t pid)
{
	fprintf(chrome->out, "%s{\"ph\":\"%c\",\"pid\":%u,\"tid\":%zu",
		chrome->begun ? ",\n" : "\n", phase, pid, chrome->n_tracks);
	chrome->begun = true;
}

/* Of times in microseconds, with all digits; what is no time has a microsecond for each. */
static void put_time(struct chrome *chrome, const struct out_tracks *tracks, uint64_t now)
{
	if (strcmp(tracks->value.unit, "nanoseconds"))
		fprintf(chrome->out, ",\"ts\":%" PRIu64, now);
	else
		fprintf(chrome->out, ",\"ts\":%" PRIu64 ".%03" PRIu64, now / 1000, now % 1000);
}

static void put_name(struct chrome *chrome, const char *what, uint32_t pid, const char *name)
{
	begin_event(chrome, 'M', pid);
	fprintf(chrome->out, ",\"name\":\"%s\",\"args\":{\"name\":", what);
	escape__json(chrome->out, name);
	fputs("}}", chrome->out);
}

static int open_slice(struct chrome *chrome, const struct out_tracks *tracks, uint32_t pid,
		      uint32_t node, uint64_t now)
{
	const struct profile *profile = tracks->profile;
	const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
	char *label = output__label(profile, frame, chrome->opts->annotate);

	if (!label)
		return -ENOMEM;
	begin_event(chrome, 'B', pid);
	put_time(chrome, tracks, now);
	fputs(",\"name\":", chrome->out);
	escape__json(chrome->out, label);
	fputs(",\"cat\":", chrome->out);
	escape__json(chrome->out, profile->kinds[frame->kind].name);
	if (profile->counts_calls)
		fprintf(chrome->out, ",\"args\":{\"calls\":%" PRIu64 "}",
			profile->nodes[node].calls);
	putc_unlocked('}', chrome->out);
	free(label);
	chrome->path[chrome->n_open++] = node;
	return 0;
}

static void close_slices(struct chrome *chrome, const struct out_tracks *tracks, uint32_t pid,
			 size_t n, uint64_t now)
{
	for (; chrome->n_open > n; chrome->n_open--) {
		begin_event(chrome, 'E', pid);
		put_time(chrome, tracks, now);
		putc_unlocked('}', chrome->out);
	}
}

/* Closes what the node's stack has not, and opens what it has. */
static int switch_to(struct chrome *chrome, struct out_tracks *tracks, uint32_t pid, uint32_t node,
		     uint64_t now)
{
	const struct profile_node *nodes = tracks->profile->nodes;
	uint32_t *stack = tracks->stack;
	size_t n = tracks->tree.depth[node], same = 0;
	int ret = 0;

	for (size_t i = n; i-- > 0; node = nodes[node].parent)
		stack[i] = node;
	while (same < n && same < chrome->n_open && chrome->path[same] == stack[same])
		same++;
	close_slices(chrome, tracks, pid, same, now);
	for (; !ret && same < n; same++)
		ret = open_slice(chrome, tracks, pid, stack[same], now);
	return ret;
}

static int put_track(struct chrome *chrome, struct out_tracks *tracks, size_t first, size_t end)
{
	const struct profile_thread *thread = out_tracks__thread(tracks, first);
	char *title = out_tracks__title(tracks, thread);
	uint32_t pid = thread ? thread->pid : 0;
	uint64_t now = 0;
	int ret = 0;

	if (!title)
		return -ENOMEM;
	chrome->n_tracks++;
	put_name(chrome, "process_name", pid, thread && thread->process ? thread->process : "");
	put_name(chrome, "thread_name", pid, title);
	free(title);
	for (size_t i = first; !ret && i < end; i++) {
		ret = switch_to(chrome, tracks, pid, tracks->parts[i].node, now);
		if (__builtin_add_overflow(now, out_tracks__value(tracks, i), &now))
			now = UINT64_MAX;
	}
	close_slices(chrome, tracks, pid, 0, now);
	return ret;
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

	fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"by\":\"braid\",\"times\":\"sums: a "
	      "slice "
	      "is all calls on its path together, and not when they were\",\"target\":",
	      out);
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
