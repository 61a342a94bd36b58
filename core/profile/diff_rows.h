/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DIFF_ROWS_H
#define BRAID_DIFF_ROWS_H

#include "core/profile/diff.h"

/* The changes of rows of a table or tree, and their significance.
 *
 * The test assumes that samples are drawn independently of each other. The exception is the threads
 * of one role, which are drawn as a whole: threads are clusters, and roles are strata. The test
 * compares two proportions with the pooled share (by value: two rates of Poisson processes). The
 * number of samples of each recording is Kish's effective one, (sum of weights)^2 / (sum of their
 * squares). That number is divided by the design effect of the clusters if the effect is above 1.
 * docs/reference/reports.md explains the result. */

enum diff_measure {
	DIFF_SELF,
	DIFF_TOTAL,
	DIFF_SCRIPT,
};

/* the sums of one side in a row */
struct diff_sum {
	double weight, squares;
	/* The variance between threads of a role is spread - 2 * p * slope + p * p * (spread of the
	 * whole), where p is the row's share. */
	double spread, slope;
};

struct diff_row {
	struct diff_sum of[DIFF_SIDES];
};

struct diff_rows {
	const struct diff *diff;
	struct diff_row *rows;
	size_t n;
	double spread[DIFF_SIDES]; /* spread of the whole */
};

/* Counts all shares by row. @row_of is the row of each node of diff->both, less than @n. In
 * DIFF_TOTAL a stack counts once for each row on its path, except that the root's row counts only
 * stacks that end in the root. In the other measures a stack counts only for the row of the node
 * where it ends, in DIFF_SCRIPT of that node's owner. Returns 0 or -ENOMEM; the caller calls
 * diff_rows__done() in any case. */
int diff_rows__init(struct diff_rows *rows, const struct diff *diff, enum diff_measure measure,
		    const uint32_t *row_of, size_t n);
void diff_rows__done(struct diff_rows *rows);

enum diff_verdict {
	DIFF_SAME,
	DIFF_FEW, /* fewer than 5 samples are expected on one of the sides */
	DIFF_WITHIN_ERROR,
	DIFF_MORE,
	DIFF_LESS,
};

#define DIFF_ERRORS_MIN 3 /* standard errors from which a difference counts as a change */

struct diff_change {
	double old, new; /* shares of 1; by value: in diff_side's unit, per second */
	double errors; /* size of the difference in standard errors; 0: no difference, or unknown */
	enum diff_verdict verdict;
	bool appeared, vanished; /* only one side has it */
};

struct diff_change diff_rows__change(const struct diff_rows *rows, size_t row);

#endif
