/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SUMS_H
#define BRAID_SUMS_H

#include "core/profile/select.h"

/* The samples of one pair of stacks, whatever their threads, are merged at once, as far as they
 * are in one group and, where idle waits are hidden, alike in what a rule can ask. */
struct sum {
	const struct recorded_stack *stack; /* one of them */
	uint64_t samples, occurrences, value, waiting, preempted;
	uint64_t waits, preemptions; /* parts of occurrences */
	uint32_t node;		     /* for who uses it: where it ends in a profile */
	bool hidden;		     /* the same: it is not in it */
};

struct sums {
	struct sum *rows;
	uint32_t *of; /* by recorded stack: row + 1, or 0: not selected */
	size_t n;
};

/* Those of what is selected. 0 or -ENOMEM; call sums__done in any case. */
int sums__init(struct sums *sums, const struct recorded *recorded,
	       const struct profile_filter *filter, const struct selection *selection);
void sums__done(struct sums *sums);

#endif
