/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PENDING_VALUES_H
#define BRAID_PENDING_VALUES_H

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

/* Takes a sample: to the sink, or, if its value is to come, later. Such a sample's value is in
 * occurrences, and its link is its own: the sink does not see it. As ids__sample. */
int pending_values__sample(struct pending_values *pending, const struct sink_sample *sample,
			   struct err *err);

/* The value has come. What is not wanted is let go of, and is none of the samples of the stats;
 * what is not known was lost on its way. As ids__sample. */
int pending_values__value(struct pending_values *pending, const struct rec_value *rec,
			  struct err *err);

/* Of how many the value has not come. */
uint64_t pending_values__unfinished(const struct pending_values *pending);

#endif
