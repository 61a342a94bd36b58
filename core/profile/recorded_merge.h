/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDED_MERGE_H
#define BRAID_RECORDED_MERGE_H

#include "core/profile/recorded.h"

/* Merges several recordings into one. Rows that readers cannot distinguish are stored once, so that
 * the sum of many similar recordings is not larger than one of them. The keys are: name and file of
 * a function, place and names of a frame, process, number and name of a thread, frames of a stack.
 * Sums, counters and durations are added up; other titles are those of the first recording. */
struct recorded_merge;

/* Makes a merge into @to, which must be initialized and empty, and outlives it. Returns 0 or
 * -ENOMEM. */
int recorded_merge__new(struct recorded *to, struct recorded_merge **ret);
void recorded_merge__free(struct recorded_merge *merge); /* @merge may be NULL */

/* Adds a recording. Returns 0 or -ENOMEM, after which only recorded_merge__free() is allowed. */
int recorded_merge__add(struct recorded_merge *merge, const struct recorded *from);

#endif
