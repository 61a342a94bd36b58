/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDED_MERGE_H
#define BRAID_RECORDED_MERGE_H

#include "core/profile/recorded.h"

/* Several recordings as one: what is the same in all that readers see of it (a function by name and
 * file, a frame by its place and its names, a thread by process, number and name, a stack by its
 * frames) is there once, so that the sum of many alike is not larger than one of them. Sums are
 * added up, so are counters and durations; other titles are those of the first. */
struct recorded_merge;

/* `to` was initialized, is empty, and outlives it. -ENOMEM. */
int recorded_merge__new(struct recorded *to, struct recorded_merge **ret);
void recorded_merge__free(struct recorded_merge *merge); /* NULL is fine */

/* 0, or -ENOMEM, after which nothing but freeing may follow. */
int recorded_merge__add(struct recorded_merge *merge, const struct recorded *from);

#endif
