/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DIFF_H
#define BRAID_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/profile/profile.h"

/* Two profiles of one event, compared. */

enum { DIFF_OLD, DIFF_NEW, DIFF_SIDES };

/* What one thread had in one node of `both`. */
struct diff_share {
	uint32_t node, thread;
	uint32_t role;	/* threads that do the same have the same: by process and name, whatever
			   numbers are in them */
	double weight;	/* in units of the side's `unit` */
	double squares; /* of the samples' weights, summed up */
};

struct diff_side {
	const struct profile *profile; /* what is compared; borrowed */
	struct diff_share *shares;     /* by role, then thread */
	size_t n_shares;
	double unit;	/* what a weight of 1 stands for: ns, of a clock's samples whose frequency
			   is known, or 1 */
	double seconds; /* that weights are divided by; 1 unless the comparison is by value */
	double whole, squares; /* of all shares */
};

struct diff {
	/* All stacks of the two, functions being the same by kind, name, the file's last component
	 * and library. Its weights are what the two have together, so that the heavier of either
	 * is heavy; what each has is in the shares. */
	struct profile *both;
	struct diff_side sides[DIFF_SIDES];
	bool by_value;		     /* else by share of each whole */
	bool clock;		     /* weights are time that samples stand for */
	double *of_node[DIFF_SIDES]; /* by node: the weight of the stacks that end there */
};

/* Both profiles outlive it. -EINVAL: they cannot be compared, and why; -ENOMEM. */
int diff__new(const struct profile *old, const struct profile *new, bool by_value,
	      struct diff **ret, struct err *err);
void diff__free(struct diff *diff); /* NULL is fine */

/* What old weights, in numbers as they were recorded, are multiplied by to be like the new ones. */
double diff__scale(const struct diff *diff);

#endif
