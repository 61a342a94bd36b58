// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/live/live_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void live_queue__init(struct live_queue *queue, size_t max)
{
	*queue = (struct live_queue) { .max = max };
	queue->end = &queue->first;
}

void live_queue__done(struct live_queue *queue)
{
	struct queued_sample *sample;

	while ((sample = live_queue__take(queue)))
		free(sample);
	free(queue->context);
	queue->context = NULL;
}

static char *append(char **to, const char *text)
{
	size_t size = strlen(text) + 1;
	char *at = memcpy(*to, text, size);

	*to += size;
	return at;
}

int live_queue__context(struct live_queue *queue, uint32_t id, const struct sink_context *context)
{
	size_t size = sizeof(*queue->context) + context->n_labels * sizeof(struct sink_label);
	char *text;

	free(queue->context);
	for (size_t i = 0; i < context->n_labels; i++)
		size += strlen(context->labels[i].key) + strlen(context->labels[i].value) + 2;
	queue->context = malloc(size);
	if (!queue->context)
		return -ENOMEM;
	queue->context->sample = (struct sink_sample) { .context = id };
	queue->context->n_labels = context->n_labels;
	text = (char *)&queue->context->labels[context->n_labels];
	for (size_t i = 0; i < context->n_labels; i++)
		queue->context->labels[i] =
			(struct sink_label) { append(&text, context->labels[i].key),
					      append(&text, context->labels[i].value) };
	return 0;
}

int live_queue__add(struct live_queue *queue, const struct sink_sample *sample)
{
	struct queued_sample *queued = NULL;

	if (queue->context && queue->context->sample.context == sample->context) {
		queued = queue->context;
		queue->context = NULL;
	}
	if (queue->n >= queue->max) {
		queue->dropped++;
		free(queued);
		return 0;
	}
	if (!queued)
		queued = calloc(1, sizeof(*queued));
	if (!queued)
		return -ENOMEM;
	queued->sample = *sample;
	queued->next = NULL;
	*queue->end = queued;
	queue->end = &queued->next;
	queue->n++;
	return 0;
}

struct queued_sample *live_queue__take(struct live_queue *queue)
{
	struct queued_sample *first = queue->first;

	if (!first)
		return NULL;
	queue->first = first->next;
	if (!queue->first)
		queue->end = &queue->first;
	queue->n--;
	return first;
}
