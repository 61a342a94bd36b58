/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DIFF_H
#define BRAID_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/profile/profile.h"

/* A comparison of two profiles of one event. */

enum { DIFF_OLD, DIFF_NEW, DIFF_SIDES };

/* the value that one thread has in one node of `both` */
struct diff_share {
	uint32_t node, thread;
	uint32_t role;	/* the same number for threads that do the same work: by process and name,
			   regardless of digits in the name */
	double weight;	/* in units of the side's `unit` */
	double squares; /* sum of the squares of the samples' weights */
};

struct diff_side {
	const struct profile *profile; /* the profile that is compared; borrowed */
	struct diff_share *shares;     /* sorted by role, then thread */
	size_t n_shares;
	double unit;	/* value of a weight of 1: ns for samples of a clock whose frequency is
			   recorded, otherwise 1 */
	double seconds; /* divisor of weights; 1 unless the comparison is by value */
	double whole, squares; /* sums of all shares */
};

struct diff {
	/* The stacks of both profiles. Two functions are the same if kind, name, last component of
	 * the file and library are equal. Weights are sums of both sides, so that a stack that is
	 * heavy on either side is heavy. The shares have the values of each side. */
	struct profile *both;
	struct diff_side sides[DIFF_SIDES];
	bool by_value;		     /* otherwise compared by share of each whole */
	bool clock;		     /* weights are the time that samples stand for */
	double *of_node[DIFF_SIDES]; /* by node: weight of the stacks that end there */
};

/* Compares @old and @new, which outlive *@ret. Returns 0, -ENOMEM, or -EINVAL with a message if
 * they cannot be compared. */
int diff__new(const struct profile *old, const struct profile *new, bool by_value,
	      struct diff **ret, struct err *err);
void diff__free(struct diff *diff); /* @diff may be NULL */

/* Returns the factor that makes old weights, as recorded, comparable with new ones. */
double diff__scale(const struct diff *diff);

#endif
