/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_TEE_H
#define BRAID_TESTS_TEE_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/profile/profile.h"
#include "core/profile/sink.h"

/* A sink that forwards everything to two others, and a way to compare their results. */

struct tee {
	struct sink sink;
	struct sink *to[2];
};

#define TEE_EACH(op, ...)                                       \
	struct tee *tee = (struct tee *)sink;                   \
	int ret = tee->to[0]->ops->op(tee->to[0], __VA_ARGS__); \
                                                                \
	return ret ? ret : tee->to[1]->ops->op(tee->to[1], __VA_ARGS__);

static int tee_event(struct sink *sink, uint32_t id, const struct sink_event *event,
		     struct err *err)
{
	TEE_EACH(event, id, event, err)
}

static int tee_process(struct sink *sink, uint32_t id, const struct sink_process *process,
		       struct err *err)
{
	TEE_EACH(process, id, process, err)
}

static int tee_process_is_called(struct sink *sink, uint32_t id, const char *name,
				 const char *command, struct err *err)
{
	TEE_EACH(process_is_called, id, name, command, err)
}

static int tee_thread(struct sink *sink, uint32_t id, uint32_t process, uint32_t tid,
		      const char *name, struct err *err)
{
	TEE_EACH(thread, id, process, tid, name, err)
}

static int tee_thread_is_called(struct sink *sink, uint32_t id, const char *name, struct err *err)
{
	TEE_EACH(thread_is_called, id, name, err)
}

static int tee_image(struct sink *sink, uint32_t id, const char *path, const char *build_id,
		     struct err *err)
{
	TEE_EACH(image, id, path, build_id, err)
}

static int tee_frame(struct sink *sink, uint32_t id, const struct sink_frame *frame,
		     struct err *err)
{
	TEE_EACH(frame, id, frame, err)
}

static int tee_frame_is_loop(struct sink *sink, uint32_t id, struct err *err)
{
	TEE_EACH(frame_is_loop, id, err)
}

static int tee_locations(struct sink *sink, uint32_t frame, const struct sink_location *locations,
			 size_t n, struct err *err)
{
	TEE_EACH(locations, frame, locations, n, err)
}

static int tee_node(struct sink *sink, uint32_t id, const struct sink_node *node, struct err *err)
{
	TEE_EACH(node, id, node, err)
}

static int tee_sample(struct sink *sink, const struct sink_sample *sample, struct err *err)
{
	TEE_EACH(sample, sample, err)
}

static int tee_source(struct sink *sink, const struct sink_source *source, struct err *err)
{
	TEE_EACH(source, source, err)
}

static const struct sink_ops tee_ops = {
	.event = tee_event,
	.process = tee_process,
	.thread = tee_thread,
	.process_is_called = tee_process_is_called,
	.thread_is_called = tee_thread_is_called,
	.image = tee_image,
	.frame = tee_frame,
	.frame_is_loop = tee_frame_is_loop,
	.locations = tee_locations,
	.node = tee_node,
	.sample = tee_sample,
	.source = tee_source,
};

static inline struct tee tee__of(struct sink *a, struct sink *b)
{
	return (struct tee) { { .ops = &tee_ops }, { a, b } };
}

static int tee_compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Returns one of a profile's stacks, root first, with all fields of its frames. Owned by the
 * caller. */
static char *tee_stack(const struct profile *profile, uint32_t node)
{
	uint32_t chain[8192], n = 0;
	char *line = NULL;
	size_t size;
	FILE *out = open_memstream(&line, &size);
	uint64_t self = profile->nodes[node].self;

	for (; node && n < 8192; node = profile->nodes[node].parent)
		chain[n++] = profile->nodes[node].frame;
	while (n--) {
		const struct profile_frame *frame = &profile->frames[chain[n]];

		fprintf(out, "%s|%s|%s|%u;", profile->kinds[frame->kind].name,
			strtab__get(profile->strings, frame->name),
			strtab__get(profile->strings, frame->file), frame->line);
	}
	fprintf(out, " %" PRIu64 "\n", self);
	fclose(out);
	return line;
}

/* Returns event, sums, and all stacks with their weights, sorted. Owned by the caller. */
static inline char *tee__text(const struct profile *profile)
{
	char **lines = calloc(profile->n_nodes, sizeof(*lines)), *text = NULL;
	size_t n = 0, size;
	FILE *out = open_memstream(&text, &size);

	fprintf(out, "%s in %s: %" PRIu64 " of %" PRIu64 "\n", profile->event, profile->unit_name,
		profile->total, profile->samples);
	for (size_t i = 0; i < profile->n_nodes; i++)
		if (profile->nodes[i].self)
			lines[n++] = tee_stack(profile, i);
	qsort(lines, n, sizeof(*lines), tee_compare_lines);
	for (size_t i = 0; i < n; i++) {
		fputs(lines[i], out);
		free(lines[i]);
	}
	free(lines);
	fclose(out);
	return text;
}

#endif
