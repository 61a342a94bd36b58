// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/out/out_tracks.h"

/* The format of github.com/jlfwong/speedscope, src/lib/file-format-spec.ts at version 1.25: frames
 * that all profiles share, then a profile with samples and weights for each event and thread. */

struct speedscope {
	const struct output_opts *opts;
	FILE *out;
	uint32_t *numbers; /* by frame of the present profile: number in the file + 1 */
	size_t n_profiles;
	size_t heaviest; /* number of the heaviest profile of the first event */
	uint64_t heaviest_value;
};

static int put_frame(struct speedscope *speedscope, const struct profile *profile, uint32_t number)
{
	const struct profile_frame *frame = &profile->frames[number];
	const char *file = strtab__get(profile->strings, frame->file);
	char *name = out_tracks__name(profile, frame, speedscope->opts->annotate);
	FILE *out = speedscope->out;

	if (!name)
		return -ENOMEM;
	fputs(",\n{\"name\":", out);
	escape__json(out, name);
	free(name);
	if (*file) {
		fputs(",\"file\":", out);
		escape__json(out, file);
	}
	if (frame->line)
		fprintf(out, ",\"line\":%u", frame->line);
	putc_unlocked('}', out);
	return 0;
}

/* Numbers the frames of stacks in the order in which they are first shown. So the file does not
 * depend on the order in which the profile was built. Writes them if @put is set. */
static int number_frames(struct speedscope *speedscope, const struct profile *profile,
			 const struct out_tree *tree, uint32_t *next, bool put)
{
	free(speedscope->numbers);
	speedscope->numbers = calloc(profile->n_frames + 1, sizeof(*speedscope->numbers));
	if (!speedscope->numbers)
		return -ENOMEM;
	for (size_t i = 0; i < tree->n_order; i++) {
		uint32_t node = tree->order[i], frame = profile->nodes[node].frame;

		if (!node || speedscope->numbers[frame])
			continue;
		speedscope->numbers[frame] = (*next)++ + 1;
		if (put && put_frame(speedscope, profile, frame))
			return -ENOMEM;
	}
	return 0;
}

static const char *unit_of(const struct pprof_value *value)
{
	if (!strcmp(value->unit, "nanoseconds") || !strcmp(value->unit, "bytes"))
		return value->unit;
	return "none";
}

static void put_samples(struct speedscope *speedscope, struct out_tracks *tracks, size_t first,
			size_t end)
{
	FILE *out = speedscope->out;
	const uint32_t *stack;
	size_t n;

	for (size_t i = first; i < end; i++) {
		fputs(i > first ? ",\n[" : "[", out);
		stack = out_tracks__stack(tracks, i, &n);
		if (!n)
			putc_unlocked('0', out);
		for (size_t k = 0; k < n; k++) {
			if (k)
				putc_unlocked(',', out);
			output__number(out, speedscope->numbers[stack[k]] - 1);
		}
		putc_unlocked(']', out);
	}
	fputs("],\n\"weights\":[", out);
	for (size_t i = first; i < end; i++) {
		if (i > first)
			putc_unlocked(',', out);
		output__number(out, out_tracks__value(tracks, i));
	}
}

static int put_track(struct speedscope *speedscope, struct out_tracks *tracks, size_t first,
		     size_t end, bool main_event)
{
	char *title =
		out_tracks__title(tracks, first < end ? out_tracks__thread(tracks, first) : NULL);
	FILE *out = speedscope->out;
	uint64_t sum = 0;

	if (!title)
		return -ENOMEM;
	for (size_t i = first; i < end; i++)
		if (__builtin_add_overflow(sum, out_tracks__value(tracks, i), &sum))
			sum = UINT64_MAX;
	fputs(speedscope->n_profiles ? ",\n{\"type\":\"sampled\",\"name\":"
				     : "\n{\"type\":\"sampled\",\"name\":",
	      out);
	escape__json(out, title);
	free(title);
	fprintf(out, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":", unit_of(&tracks->value));
	output__number(out, sum);
	fputs(",\n\"samples\":[", out);
	put_samples(speedscope, tracks, first, end);
	fputs("]}", out);
	if (main_event && sum > speedscope->heaviest_value) {
		speedscope->heaviest = speedscope->n_profiles;
		speedscope->heaviest_value = sum;
	}
	speedscope->n_profiles++;
	return 0;
}

static int put_event(struct speedscope *speedscope, const struct profile *profile, uint32_t *next,
		     bool main_event)
{
	struct out_tracks tracks;
	size_t at = 0, end;
	int ret = out_tracks__init(&tracks, profile);

	if (!ret)
		ret = number_frames(speedscope, profile, &tracks.tree, next, false);
	/* An event without samples has a profile as well, as some viewers need one. */
	if (!ret && !tracks.n_parts)
		ret = put_track(speedscope, &tracks, 0, 0, main_event);
	for (; !ret && at < tracks.n_parts; at = end) {
		end = out_tracks__end(&tracks, at);
		ret = put_track(speedscope, &tracks, at, end, main_event);
	}
	out_tracks__done(&tracks);
	return ret;
}

static int put_frames(struct speedscope *speedscope, const struct profile *profile, uint32_t *next)
{
	struct out_tree tree;
	int ret = out_tree__init(&tree, profile);

	if (ret)
		return ret;
	ret = number_frames(speedscope, profile, &tree, next, true);
	out_tree__done(&tree);
	return ret;
}

int output__speedscope(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct speedscope speedscope = { .opts = opts, .out = out };
	uint32_t next = 1;
	int ret;

	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
	      "\"exporter\":\"braid\",\n\"name\":",
	      out);
	escape__json(out, profile->target && *profile->target ? profile->target : "braid");
	fputs(",\n\"shared\":{\"frames\":[\n{\"name\":\"[no stack]\"}", out);
	ret = put_frames(&speedscope, profile, &next);
	for (size_t i = 0; !ret && i < opts->n_others; i++)
		ret = put_frames(&speedscope, opts->others[i], &next);
	fputs("]},\n\"profiles\":[", out);
	next = 1;
	if (!ret)
		ret = put_event(&speedscope, profile, &next, true);
	for (size_t i = 0; !ret && i < opts->n_others; i++)
		ret = put_event(&speedscope, opts->others[i], &next, false);
	fprintf(out, "],\n\"activeProfileIndex\":%zu}\n", speedscope.heaviest);
	free(speedscope.numbers);
	return ret ? ret : output__finish(out);
}
