// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/pending_values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct pending_value {
	UT_hash_handle hh; /* in order of arrival */
	struct sink_sample sample;
	struct pending_record *record; /* NULL: not stored */
};

struct pending_values {
	struct ids *const *ids;
	struct capture_stats *stats;
	struct pending_value *first;
	uint64_t given_up;
	struct rest_rec lost[EVENTS_MAX]; /* occurrences of discarded samples, event n at n - 1 */
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
	free(one->record);
	free(one);
}

void pending_values__free(struct pending_values *pending)
{
	while (pending && pending->first)
		forget(pending, pending->first);
	free(pending);
}

/* Passes a sample with its final value to the sink. */
static int finish(struct pending_values *pending, const struct sink_sample *sample, struct err *err)
{
	pending->stats->sums[sample->event - 1][sample->condition.state] += sample->total;
	return ids__sample(*pending->ids, sample, err);
}

/* Returns a copy of the record. NULL: none is needed, or memory is short. */
static struct pending_record *record_of(const struct pending_origin *origin)
{
	struct pending_record *record =
		origin && origin->keeps ? malloc(sizeof(*record) + origin->size) : NULL;

	if (!record)
		return NULL;
	*record = (struct pending_record) { .serial = origin->serial, .size = origin->size };
	memcpy(record->data, origin->rec, origin->size);
	return record;
}

/* Adds the occurrences that a sample without a value stands for to the rest of its event. */
static void add_to(struct rest_rec *rest, const struct sink_sample *sample)
{
	rest->weight += sample->weight;
	rest->total += sample->object * sample->weight;
}

static void lose(struct pending_values *pending, const struct sink_sample *sample)
{
	add_to(&pending->lost[sample->event - 1], sample);
}

int pending_values__sample(struct pending_values *pending, const struct sink_sample *sample,
			   const struct pending_origin *origin, struct err *err)
{
	struct pending_value *one;

	if (!(sample->flags & SAMPLE_PENDING))
		return finish(pending, sample, err);
	one = calloc(1, sizeof(*one));
	if (!one)
		return err__set(err, -ENOMEM, "out of memory");
	one->sample = *sample;
	one->sample.flags &= ~SAMPLE_PENDING;
	one->record = record_of(origin);
	if (HASH_COUNT(pending->first) >= PENDING_MAX) {
		lose(pending, &pending->first->sample);
		forget(pending, pending->first);
		pending->given_up++;
	}
	HASH_ADD(hh, pending->first, sample.link, sizeof(one->sample.link), one);
	return 0;
}

void pending_values__give_back(struct pending_values *pending, uint32_t event, bool last,
			       struct rest_rec *add)
{
	struct rest_rec *lost = &pending->lost[event - 1];
	struct pending_value *one, *next;

	HASH_ITER (hh, pending->first, one, next)
		if (last && one->sample.event == event)
			add_to(add, &one->sample);
	add->weight += lost->weight;
	add->total += lost->total;
	*lost = (struct rest_rec) {};
}

/* Removes a sample from the stats. */
static void count_out(struct pending_values *pending, const struct sink_sample *sample)
{
	pending->stats->samples--;
	pending->stats->event_samples[sample->event - 1]--;
	pending->stats->complete -= !!(sample->flags & SAMPLE_COMPLETE);
}

struct pending_record *pending_values__take(struct pending_values *pending)
{
	struct pending_record *first = NULL, **end = &first;
	struct pending_value *one, *next;

	HASH_ITER (hh, pending->first, one, next) {
		if (one->record) {
			count_out(pending, &one->sample);
			*end = one->record;
			end = &one->record->next;
			one->record = NULL;
		} else {
			lose(pending, &one->sample);
			pending->given_up++;
		}
		forget(pending, one);
	}
	pending->stats->unfinished = pending->given_up;
	pending->given_up = 0;
	return first;
}

void pending_records__free(struct pending_record *records)
{
	while (records) {
		struct pending_record *next = records->next;

		free(records);
		records = next;
	}
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
		count_out(pending, &sample);
		return 0;
	}
	sample.link = 0;
	sample.value *= rec->value;
	sample.total *= rec->value;
	sample.object = rec->object ?: sample.object;
	return finish(pending, &sample, err);
}

uint64_t pending_values__unfinished(const struct pending_values *pending)
{
	return HASH_COUNT(pending->first) + pending->given_up;
}
