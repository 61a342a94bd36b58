/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LIVE_QUEUE_H
#define BRAID_LIVE_QUEUE_H

#include <stdbool.h>

#include "core/profile/sink.h"

/* Samples in the order of their arrival, each with the labels of its context. At most `max` are
 * stored; later ones are dropped and counted. All zero is a queue that takes none. */
struct queued_sample {
	struct queued_sample *next;
	struct sink_sample sample;
	size_t n_labels;
	struct sink_label labels[]; /* their texts follow in the same block */
};

struct live_queue {
	struct queued_sample *first, **end;
	size_t n, max;
	uint64_t dropped;
	struct queued_sample *context; /* the newest labels, until their sample; NULL: none */
};

void live_queue__init(struct live_queue *queue, size_t max);
void live_queue__done(struct live_queue *queue);

/* Stores a copy of the labels for the sample with the context @id. A sample that waits for its
 * value until the next context has no labels. Returns 0 or -ENOMEM. */
int live_queue__context(struct live_queue *queue, uint32_t id, const struct sink_context *context);

/* Returns 0 or -ENOMEM. */
int live_queue__add(struct live_queue *queue, const struct sink_sample *sample);

/* Takes out the first sample, which the caller frees; NULL: the queue is empty. */
struct queued_sample *live_queue__take(struct live_queue *queue);

#endif
