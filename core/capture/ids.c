// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/ids.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/intern.h"
#include "core/base/text_ids.h"
#include "core/base/util.h"

/* Limits of the tables, so that memory stays flat: 50 MB of nodes, 12 MB of frames. */
#define NODES_MAX  ((1U << 21) / 4 * 3)
#define FRAMES_MAX ((1U << 19) / 4 * 3)

/* Bits of the number of an image, a process or a generation in the key of a frame. They suffice:
 * each image comes with a file, and each process with a fork. */
#define WHERE_BITS 28

struct ids {
	struct sink *sink;
	struct intern nodes, frames;
	struct text_ids threads, images, contexts;
	char *context; /* key of the current look-up in `contexts` */
	size_t cap_context;
	uint32_t n_events, n_processes, n_frames, n_nodes;
	uint32_t last_context; /* id of the newest context, for next_context */
	uint32_t forgotten;    /* number of times that the sink dropped ids */
};

static void begin(struct ids *ids, struct sink *sink)
{
	*ids = (struct ids) { .sink = sink };
	intern__init(&ids->nodes, NODES_MAX);
	intern__init(&ids->frames, FRAMES_MAX);
}

int ids__new(struct sink *sink, struct ids **ret, struct err *err)
{
	struct ids *ids = calloc(1, sizeof(*ids));

	if (!ids)
		return err__set(err, -ENOMEM, "out of memory");
	begin(ids, sink);
	*ret = ids;
	return 0;
}

static void forget(struct ids *ids)
{
	intern__done(&ids->nodes);
	intern__done(&ids->frames);
	text_ids__done(&ids->threads);
	text_ids__done(&ids->images);
	text_ids__done(&ids->contexts);
	free(ids->context);
}

void ids__free(struct ids *ids)
{
	if (!ids)
		return;
	forget(ids);
	free(ids);
}

void ids__renew(struct ids *ids, struct sink *sink)
{
	forget(ids);
	begin(ids, sink);
}

int ids__event(struct ids *ids, const struct sink_event *event, uint32_t *ret_id, struct err *err)
{
	*ret_id = ++ids->n_events;
	return ids->sink->ops->event(ids->sink, *ret_id, event, err);
}

int ids__process(struct ids *ids, const struct sink_process *process, uint32_t *ret_id,
		 struct err *err)
{
	int ret = ids->sink->ops->process(ids->sink, ids->n_processes + 1, process, err);

	if (!ret)
		*ret_id = ++ids->n_processes;
	return ret;
}

int ids__process_is_called(struct ids *ids, uint32_t process, const char *name, const char *command,
			   struct err *err)
{
	return ids->sink->ops->process_is_called(ids->sink, process, name, command, err);
}

int ids__thread(struct ids *ids, uint32_t process, uint32_t tid, const char *name, uint32_t *ret_id,
		struct err *err)
{
	bool is_new;

	assert(process <= ids->n_processes);
	if (text_ids__at(&ids->threads, process, tid, name, "", ret_id, &is_new))
		return err__set(err, -ENOMEM, "out of memory");
	return is_new ? ids->sink->ops->thread(ids->sink, *ret_id, process, tid, name, err) : 0;
}

int ids__thread_is_called(struct ids *ids, uint32_t thread, const char *name, struct err *err)
{
	return ids->sink->ops->thread_is_called(ids->sink, thread, name, err);
}

int ids__image(struct ids *ids, const char *path, const char *build_id, uint32_t *ret_id,
	       struct err *err)
{
	bool is_new;

	if (text_ids__at(&ids->images, 0, 0, path, build_id, ret_id, &is_new))
		return err__set(err, -ENOMEM, "out of memory");
	return is_new ? ids->sink->ops->image(ids->sink, *ret_id, path, build_id, err) : 0;
}

/* Writes the labels as one text: each "key=value" is followed by a control character, which labels
 * do not contain. */
static int write_labels(struct ids *ids, const struct sink_context *context)
{
	size_t size = 1, len = 0;

	for (size_t i = 0; i < context->n_labels; i++)
		size += strlen(context->labels[i].key) + strlen(context->labels[i].value) + 2;
	if (array__reserve(&ids->context, &ids->cap_context, size, 1))
		return -ENOMEM;
	ids->context[0] = '\0';
	for (size_t i = 0; i < context->n_labels; i++)
		len += snprintf(ids->context + len, size - len, "%s=%s\x1e", context->labels[i].key,
				context->labels[i].value);
	return 0;
}

static int next_context(struct ids *ids, const struct sink_context *context, uint32_t *ret_id,
			struct err *err)
{
	if (!++ids->last_context)
		ids->last_context = 1; /* 0: none */
	*ret_id = ids->last_context;
	return ids->sink->ops->next_context(ids->sink, *ret_id, context, err);
}

#define CONTEXT_IDS_BYTES 64

int ids__context(struct ids *ids, const struct sink_context *context, uint32_t *ret_id,
		 struct err *err)
{
	char numbers[CONTEXT_IDS_BYTES];
	bool is_new;

	*ret_id = 0;
	if (ids->sink->ops->next_context)
		return next_context(ids, context, ret_id, err);
	if (!ids->sink->ops->context)
		return 0;
	snprintf(numbers, sizeof(numbers), "%s:%s", context->trace ?: "", context->span ?: "");
	if (write_labels(ids, context) ||
	    text_ids__at(&ids->contexts, 0, 0, numbers, ids->context, ret_id, &is_new))
		return err__set(err, -ENOMEM, "out of memory");
	return is_new ? ids->sink->ops->context(ids->sink, *ret_id, context, err) : 0;
}

int ids__frame(struct ids *ids, const struct ids_frame *frame, uint32_t *ret_id, bool *ret_new,
	       struct err *err)
{
	const struct sink_frame row = { frame->kind, frame->image, frame->process, frame->address,
					frame->loop };
	/* Code of a process has no image. */
	uint64_t file = frame->image ? frame->image : frame->generation;
	uint64_t where =
		(uint64_t)frame->kind << 2 * WHERE_BITS | file << WHERE_BITS | frame->process;
	uint32_t *id;
	int ret = 0;

	assert(frame->kind >= 0 && frame->kind <= UINT8_MAX);
	if ((file | frame->process) >> WHERE_BITS)
		return err__set(err, -EOVERFLOW,
				"cannot record another frame: a recording has at most 268 million "
				"files and 268 million processes. Split it with --rotate");
	id = intern__at(&ids->frames, frame->address, where);
	if (!id)
		return err__set(err, -ENOMEM, "out of memory");
	if (ret_new)
		*ret_new = !*id;
	if (!*id) {
		if ((ids->n_frames + 1) >> SINK_FRAME_BITS)
			return err__set(err, -EOVERFLOW,
					"cannot record another frame: a recording has at most "
					"1.07 billion. Split it with --rotate");
		*id = ++ids->n_frames;
		ret = ids->sink->ops->frame(ids->sink, *id, &row, err);
	}
	*ret_id = *id;
	return ret;
}

int ids__node_of(struct ids *ids, const struct sink_node *node, uint32_t *ret_id, struct err *err)
{
	uint32_t *id = intern__at(&ids->nodes, sink_node__key(node), node->offset);
	int ret = 0;

	assert(node->parent <= ids->n_nodes && node->frame <= ids->n_frames &&
	       node->evidence < EVIDENCES_N);
	if (!id)
		return err__set(err, -ENOMEM, "out of memory");
	if (!*id) {
		if (ids->n_nodes == UINT32_MAX)
			return err__set(err, -EOVERFLOW,
					"cannot record another stack: a recording has at most "
					"4.29 billion nodes of stacks. Split it with --rotate");
		*id = ++ids->n_nodes;
		ret = ids->sink->ops->node(ids->sink, *id, node, err);
	}
	*ret_id = *id;
	return ret;
}

int ids__node(struct ids *ids, uint32_t parent, uint32_t frame, int64_t offset, uint32_t *ret_id,
	      struct err *err)
{
	return ids__node_of(ids, &(struct sink_node) { parent, frame, offset, EVIDENCE_RULE },
			    ret_id, err);
}

int ids__frame_is_loop(struct ids *ids, uint32_t frame, struct err *err)
{
	assert(frame && frame <= ids->n_frames);
	return ids->sink->ops->frame_is_loop(ids->sink, frame, err);
}

int ids__locations(struct ids *ids, uint32_t frame, const struct sink_location *locations, size_t n,
		   struct err *err)
{
	assert(frame && frame <= ids->n_frames);
	return ids->sink->ops->locations(ids->sink, frame, locations, n, err);
}

int ids__attribute(struct ids *ids, uint32_t process, const struct sink_label *label,
		   struct err *err)
{
	return ids->sink->ops->attribute ? ids->sink->ops->attribute(ids->sink, process, label, err)
					 : 0;
}

int ids__source(struct ids *ids, const struct sink_source *source, struct err *err)
{
	return ids->sink->ops->source(ids->sink, source, err);
}

static bool has_node(const void *sink, uint32_t id)
{
	return ((const struct sink *)sink)->ops->has_node(sink, id);
}

static bool has_frame(const void *sink, uint32_t id)
{
	return ((const struct sink *)sink)->ops->has_frame(sink, id);
}

int ids__sample(struct ids *ids, const struct sink_sample *sample, struct err *err)
{
	struct sink *sink = ids->sink;
	int ret;

	assert(sample->native <= ids->n_nodes && sample->runtime <= ids->n_nodes);
	ret = sink->ops->sample(sink, sample, err);
	if (ret || !sink->forgot)
		return ret;
	sink->forgot = false;
	ids->forgotten++;
	return intern__keep(&ids->nodes, has_node, sink) ||
			       intern__keep(&ids->frames, has_frame, sink)
		       ? err__set(err, -ENOMEM, "out of memory")
		       : 0;
}

uint32_t ids__forgotten(const struct ids *ids)
{
	return ids->forgotten;
}

bool ids__has_frame(const struct ids *ids, uint32_t frame)
{
	return has_frame(ids->sink, frame);
}
