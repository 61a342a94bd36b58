/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PENDING_VALUES_H
#define BRAID_PENDING_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "core/base/err.h"
#include "core/capture/capture.h"
#include "core/capture/ids.h"

/* Samples of what has only begun (SAMPLE_PENDING), until their values come (REC_VALUE). Bounded:
 * with more than PENDING_MAX the oldest are given up. */
#define PENDING_MAX 131072

struct pending_values;

/* Both are borrowed, outlive it, and are looked at when samples come. NULL: out of memory. */
struct pending_values *pending_values__new(struct ids *const *ids, struct capture_stats *stats);
void pending_values__free(struct pending_values *pending); /* NULL is fine */

/* The record that a sample was made of. */
struct pending_origin {
	uint32_t serial; /* of its process */
	const struct rec_sample *rec;
	size_t size;
	bool keeps; /* it is wanted again */
};

/* Takes a sample: to the sink, or, if its value is to come, later. Such a sample's value and
 * total are in occurrences, and its link is its own: the sink does not see it. As ids__sample. */
int pending_values__sample(struct pending_values *pending, const struct sink_sample *sample,
			   const struct pending_origin *origin, struct err *err);

struct pending_record {
	struct pending_record *next;
	uint32_t serial;
	size_t size;
	uint64_t data[]; /* a rec_sample; aligned as in the ring */
};

/* The records of all samples whose values have not come: they are none of the stats, and not known
 * any more, as if they had not come yet. Those that had no origin, or no memory for it, and those
 * that were given up are left in the stats as unfinished. For pending_records__free. */
struct pending_record *pending_values__take(struct pending_values *pending);
void pending_records__free(struct pending_record *records); /* NULL is fine */

/* The value has come. What is not wanted is let go of, and is none of the samples of the stats;
 * what is not known was lost on its way. As ids__sample. */
int pending_values__value(struct pending_values *pending, const struct rec_value *rec,
			  struct err *err);

/* Adds the occurrences of @event whose samples were given up to @add, once, with the sum of their
 * objects as the total. @last: also those of samples that are pending, as no value will come. */
void pending_values__give_back(struct pending_values *pending, uint32_t event, bool last,
			       struct rest_rec *add);

/* Of how many the value has not come. */
uint64_t pending_values__unfinished(const struct pending_values *pending);

#endif
