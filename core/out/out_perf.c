// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/out/out_tracks.h"

/* Text as perf-script(1) writes it with -F comm,pid,tid,time,period,event,ip,sym,dso (Linux 6.12,
 * tools/perf/builtin-script.c). Each sample is a line with the thread and the event, then a line
 * per frame, leaf first, and an empty one. Its readers split at blanks and at the last " (". A line
 * that begins with # is a comment. Some readers drop a symbol that begins with (. Others split
 * symbols at -> into a caller and its inlined callee (FlameGraph's stackcollapse-perf.pl). */

#define NS_PER_S 1000000000

/* Time between samples of unknown length, in ns. */
#define STEP_NS 1000

/* Returns a printable copy of @text, in which the characters in @signs, which the line format uses
 * itself, become '_'. Owned by the caller; NULL: out of memory. */
static char *word(const char *text, const char *signs)
{
	char *copy = strdup(text), *at;

	if (!copy)
		return NULL;
	escape__printable(copy);
	for (at = copy; (at = strpbrk(at, signs)) != NULL;)
		*at = '_';
	return copy;
}

/* As word() for a symbol, in place: "(eval)" becomes "[eval]", and "operator->" becomes
 * "operator=>". */
static void clean_symbol(char *name)
{
	char *at = name + strspn(name, " ");

	escape__printable(name);
	if (*at == '(') {
		char *end = strchr(at, ')');

		*at = '[';
		if (end)
			*end = ']';
	}
	for (at = name; (at = strstr(at, "->")) != NULL;)
		*at = '=';
}

/* Returns the name of a thread as the first word of a line. */
static char *first_word(const char *text)
{
	char *name = word(text, " "), *marked = NULL;

	if (!name || *name != '#')
		return name;
	if (asprintf(&marked, "_%s", name) < 0)
		marked = NULL;
	free(name);
	return marked;
}

/* Returns the file of a frame, or its kind: "/app/run.py:3", "libc", "[kernel.kallsyms]",
 * "inlined", "[label]". */
static char *module_of(const struct profile *profile, const struct profile_frame *frame)
{
	const char *file = strtab__get(profile->strings, frame->file);
	const char *library = strtab__get(profile->strings, frame->library);
	const char *kind = profile->kinds[frame->kind].name;
	char *module = NULL, *clean;
	int n;

	if (frame->kind == KIND_KERNEL)
		return strdup("[kernel.kallsyms]");
	if (frame->line && *file)
		n = asprintf(&module, "%s:%u", file, frame->line);
	else if (frame->kind == KIND_INLINED)
		return strdup("inlined");
	else if (frame->kind == KIND_NATIVE)
		n = asprintf(&module, "%s", *library ? library : "[unknown]");
	else
		n = asprintf(&module, *file ? "%s" : "[%s]", *file ? file : kind);
	if (n < 0)
		return NULL;
	clean = word(module, " ()");
	free(module);
	return clean;
}

/* Lines by frame of the profile, each made when first needed. */
struct lines {
	char **of;
	size_t n;
};

static void lines_done(struct lines *lines)
{
	for (size_t i = 0; lines->of && i < lines->n; i++)
		free(lines->of[i]);
	free(lines->of);
}

/* Returns the line of a frame. The address is 0, as a profile is not about addresses. */
static const char *line_of(struct lines *lines, const struct profile *profile, uint32_t number,
			   int annotate)
{
	const struct profile_frame *frame = &profile->frames[number];
	char *name = NULL, *module = NULL, **line = &lines->of[number];

	if (*line)
		return *line;
	name = out_tracks__name(profile, frame, annotate);
	module = module_of(profile, frame);
	if (name && module) {
		clean_symbol(name);
		if (asprintf(line, "\t%16x %s (%s)\n", 0, *name ? name : "[unknown]", module) < 0)
			*line = NULL;
	}
	free(name);
	free(module);
	return *line;
}

static int put_header(const struct profile_thread *thread, uint64_t now, uint64_t value,
		      const char *event, FILE *out)
{
	char *comm = first_word(thread && thread->name ? thread->name : "");

	if (!comm)
		return -ENOMEM;
	fprintf(out, "%s  %5u/%-5u %5" PRIu64 ".%09" PRIu64 ": %10" PRIu64 " %s: \n",
		*comm ? comm : "braid", thread ? thread->pid : 0, thread ? thread->tid : 0,
		now / NS_PER_S, now % NS_PER_S, value, event);
	free(comm);
	return 0;
}

static int put_stack(struct out_tracks *tracks, size_t part, struct lines *lines, int annotate,
		     FILE *out)
{
	size_t n;
	const uint32_t *stack = out_tracks__stack(tracks, part, &n);

	if (!n)
		fprintf(out, "\t%16x [no stack] ([unknown])\n", 0);
	while (n-- > 0) {
		const char *line = line_of(lines, tracks->profile, stack[n], annotate);

		if (!line)
			return -ENOMEM;
		fputs_unlocked(line, out);
	}
	putc_unlocked('\n', out);
	return 0;
}

/* one of the recording's events */
struct event {
	struct out_tracks tracks;
	struct lines lines;
	char *name;
};

static void event_done(struct event *event)
{
	free(event->name);
	lines_done(&event->lines);
	out_tracks__done(&event->tracks);
}

/* Sets the times of samples that have none. Each begins where the values of the previous ones in
 * its thread end. */
static void add_times(struct out_tracks *tracks)
{
	bool timed = !strcmp(tracks->value.unit, "nanoseconds");
	uint64_t now = 0;

	for (size_t i = 0; i < tracks->n_parts && !tracks->instants; i++) {
		if (i && tracks->parts[i - 1].thread != tracks->parts[i].thread)
			now = 0;
		tracks->parts[i].time_ns = now;
		if (__builtin_add_overflow(now, timed ? out_tracks__value(tracks, i) : STEP_NS,
					   &now))
			now = UINT64_MAX;
	}
}

/* Initializes @event. Returns 0 or -ENOMEM; the caller calls event_done() in any case. */
static int event_init(struct event *event, const struct profile *profile)
{
	int ret = out_tracks__init(&event->tracks, profile);

	if (ret)
		return ret;
	add_times(&event->tracks);
	event->lines = (struct lines) { calloc(profile->n_frames + 1, sizeof(*event->lines.of)),
					profile->n_frames };
	event->name = word(event->tracks.value.event, " \t");
	return event->lines.of && event->name ? 0 : -ENOMEM;
}

struct sample {
	struct event *event;
	size_t part;
	uint64_t time_ns;
};

/* Sorts by time, as perf script does. Samples of one time stay in their order. */
static int compare_samples(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	return (x->part > y->part) - (x->part < y->part);
}

static int put_samples(struct event *events, size_t n_events, bool instants, int annotate,
		       FILE *out)
{
	struct sample *samples;
	size_t n = 0, all = 0;
	int ret = 0;

	for (size_t i = 0; i < n_events; i++)
		all += events[i].tracks.n_parts;
	samples = calloc(all + 1, sizeof(*samples));
	if (!samples)
		return -ENOMEM;
	for (size_t i = 0; i < n_events; i++)
		for (size_t part = 0; part < events[i].tracks.n_parts; part++)
			samples[n++] = (struct sample) { &events[i], part,
							 events[i].tracks.parts[part].time_ns };
	if (instants)
		qsort(samples, n, sizeof(*samples), compare_samples);
	for (size_t i = 0; i < n && !ret; i++) {
		struct out_tracks *tracks = &samples[i].event->tracks;

		ret = put_header(out_tracks__thread(tracks, samples[i].part), samples[i].time_ns,
				 out_tracks__value(tracks, samples[i].part), samples[i].event->name,
				 out);
		if (!ret)
			ret = put_stack(tracks, samples[i].part, &samples[i].event->lines, annotate,
					out);
	}
	free(samples);
	return ret;
}

static void put_heading(const struct profile *profile, FILE *out)
{
	char summary[OUTPUT_SUMMARY_BYTES], notes[OUTPUT_NOTES_MAX][OUTPUT_NOTE_BYTES];
	size_t n = output__notes(profile, notes);

	output__summary(profile, summary, sizeof(summary));
	fprintf(out, "# %s\n", summary);
	for (size_t i = 0; i < n; i++)
		fprintf(out, "# %s\n", notes[i]);
	for (size_t i = 0; i < profile->n_losses; i++)
		escape__line(out, "# lost: %s: %" PRIu64, profile->losses[i].name,
			     profile->losses[i].count);
}

int output__perf(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	size_t n = opts->n_others + 1;
	struct event *events = calloc(n, sizeof(*events));
	int ret = 0;

	if (!events)
		return -ENOMEM;
	fprintf(out, "# ========\n# by braid, as perf script; times %s, addresses are unknown\n",
		profile->instants ? "are since the first sample" : "follow from values");
	if (profile->target && *profile->target)
		escape__line(out, "# target: %s", profile->target);
	put_heading(profile, out);
	for (size_t i = 0; i < opts->n_others; i++)
		put_heading(opts->others[i], out);
	fputs("# ========\n#\n", out);
	for (size_t i = 0; !ret && i < n; i++)
		ret = event_init(&events[i], i ? opts->others[i - 1] : profile);
	if (!ret)
		ret = put_samples(events, n, profile->instants, opts->annotate, out);
	for (size_t i = 0; i < n; i++)
		event_done(&events[i]);
	free(events);
	return ret ? ret : output__finish(out);
}
