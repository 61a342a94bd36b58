/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SUMS_H
#define BRAID_SUMS_H

#include "core/profile/select.h"

/* A sum of samples with the same pair of stacks, regardless of their threads; the pair is merged
 * once. The samples belong to one group. If idle waits are hidden, they also agree in all fields
 * that a rule checks. */
struct sum {
	const struct recorded_stack *stack; /* one of the stacks */
	uint64_t samples, occurrences, value, waiting, preempted;
	uint64_t parked;	     /* part of waiting of tasks that were on no thread */
	uint64_t waits, preemptions; /* parts of occurrences */
	uint32_t node;		     /* for the caller: node of a profile where the stack ends */
	bool hidden;		     /* for the caller: left out of the profile */
};

struct sums {
	struct sum *rows;
	uint32_t *of; /* by recorded stack: row + 1, or 0: not selected */
	size_t n;
};

/* Sums up the selected samples. Returns 0 or -ENOMEM; the caller calls sums__done() in any case. */
int sums__init(struct sums *sums, const struct recorded *recorded,
	       const struct profile_filter *filter, const struct selection *selection);
void sums__done(struct sums *sums);

#endif
