// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/pending_values.h"

#include <errno.h>
#include <stdlib.h>
#include <uthash.h>

struct pending_value {
	UT_hash_handle hh; /* in the order in which they came */
	struct sink_sample sample;
};

struct pending_values {
	struct ids *const *ids;
	struct capture_stats *stats;
	struct pending_value *first;
	uint64_t given_up;
};

struct pending_values *pending_values__new(struct ids *const *ids, struct capture_stats *stats)
{
	struct pending_values *pending = calloc(1, sizeof(*pending));

	if (pending)
		*pending = (struct pending_values) { .ids = ids, .stats = stats };
	return pending;
}

static void forget(struct pending_values *pending, struct pending_value *one)
{
	HASH_DEL(pending->first, one);
	free(one);
}

void pending_values__free(struct pending_values *pending)
{
	while (pending && pending->first)
		forget(pending, pending->first);
	free(pending);
}

/* The sample is known in full. */
static int finish(struct pending_values *pending, const struct sink_sample *sample, struct err *err)
{
	pending->stats->sums[sample->event - 1][sample->condition.state] += sample->value;
	return ids__sample(*pending->ids, sample, err);
}

int pending_values__sample(struct pending_values *pending, const struct sink_sample *sample,
			   struct err *err)
{
	struct pending_value *one;

	if (!(sample->flags & SAMPLE_PENDING))
		return finish(pending, sample, err);
	one = calloc(1, sizeof(*one));
	if (!one)
		return err__set(err, -ENOMEM, "out of memory");
	one->sample = *sample;
	one->sample.flags &= ~SAMPLE_PENDING;
	if (HASH_COUNT(pending->first) >= PENDING_MAX) {
		forget(pending, pending->first);
		pending->given_up++;
	}
	HASH_ADD(hh, pending->first, sample.link, sizeof(one->sample.link), one);
	return 0;
}

int pending_values__value(struct pending_values *pending, const struct rec_value *rec,
			  struct err *err)
{
	struct pending_value *one;
	struct sink_sample sample;

	HASH_FIND(hh, pending->first, &rec->link, sizeof(rec->link), one);
	if (!one)
		return 0;
	sample = one->sample;
	forget(pending, one);
	if (!rec->value) {
		pending->stats->samples--;
		pending->stats->event_samples[sample.event - 1]--;
		pending->stats->complete -= !!(sample.flags & SAMPLE_COMPLETE);
		return 0;
	}
	sample.link = 0;
	sample.value *= rec->value;
	sample.object = rec->object ?: sample.object;
	return finish(pending, &sample, err);
}

uint64_t pending_values__unfinished(const struct pending_values *pending)
{
	return HASH_COUNT(pending->first) + pending->given_up;
}
