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

/* Samples of occurrences that have only begun (SAMPLE_PENDING), until their values arrive
 * (REC_VALUE). Bounded: with more than PENDING_MAX, the oldest are discarded. */
#define PENDING_MAX 131072

struct pending_values;

/* @ids and @stats are borrowed and must outlive the object. They are read when samples arrive.
 * NULL: out of memory. */
struct pending_values *pending_values__new(struct ids *const *ids, struct capture_stats *stats);
void pending_values__free(struct pending_values *pending); /* NULL is fine */

/* the record of a sample */
struct pending_origin {
	uint32_t serial; /* serial number of its process */
	const struct rec_sample *rec;
	size_t size;
	bool keeps; /* store a copy for pending_values__take() */
};

/* Passes a sample to the sink, or stores it until its value arrives. The value and total of such a
 * sample are numbers of occurrences. Its link identifies the value and does not go to the sink.
 * Returns as ids__sample(). */
int pending_values__sample(struct pending_values *pending, const struct sink_sample *sample,
			   const struct pending_origin *origin, struct err *err);

struct pending_record {
	struct pending_record *next;
	uint32_t serial;
	size_t size;
	uint64_t data[]; /* a rec_sample; aligned as in the ring */
};

/* Returns and drops the records of all samples whose values have not arrived. Removes these samples
 * from the stats, as if their records had not arrived either. Discarded samples, and those without
 * a stored record, stay in the stats as unfinished. The caller frees the result by
 * pending_records__free(). */
struct pending_record *pending_values__take(struct pending_values *pending);
void pending_records__free(struct pending_record *records); /* NULL is fine */

/* Completes the sample to which the value belongs. A value of 0 means that the sample is not to be
 * recorded: it is dropped, also from the stats. If the sample is missing, it was lost. Returns as
 * ids__sample(). */
int pending_values__value(struct pending_values *pending, const struct rec_value *rec,
			  struct err *err);

/* Adds the occurrences of @event in discarded samples to @add, once, with the sum of their objects
 * as the total. With @last, also adds those of pending samples, as no values will arrive. */
void pending_values__give_back(struct pending_values *pending, uint32_t event, bool last,
			       struct rest_rec *add);

/* Returns the number of samples without a value. */
uint64_t pending_values__unfinished(const struct pending_values *pending);

#endif
