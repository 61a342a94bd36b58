/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DIFF_ROWS_H
#define BRAID_DIFF_ROWS_H

#include "core/profile/diff.h"

/* How much rows of a table or tree have changed, and what that is worth.
 *
 * Samples are taken as drawn independently of each other, except that threads of one role are drawn
 * as a whole: they are clusters, and roles are strata. The test is that of two proportions with the
 * pooled share (by value: of two rates of Poisson processes), where the number of samples of each
 * recording is Kish's effective one, (sum of weights)^2 / (sum of their squares), divided by the
 * design effect of the clusters if that is above 1. docs/reference/reports.md says what that means.
 */

enum diff_measure {
	DIFF_SELF,
	DIFF_TOTAL,
	DIFF_SCRIPT,
};

/* What one side has of a row. */
struct diff_sum {
	double weight, squares;
	/* The variance between threads of a role is spread - 2 * p * slope + p * p * the same of
	 * the whole, p being the row's share. */
	double spread, slope;
};

struct diff_row {
	struct diff_sum of[DIFF_SIDES];
};

struct diff_rows {
	const struct diff *diff;
	struct diff_row *rows;
	size_t n;
	double spread[DIFF_SIDES]; /* of the whole */
};

/* `row_of`: by node of diff->both, less than `n`. The root counts for its row in all but DIFF_TOTAL
 * what ends in it, and so it does there; any other row counts a stack once. 0 or -ENOMEM; call
 * diff_rows__done in any case. */
int diff_rows__init(struct diff_rows *rows, const struct diff *diff, enum diff_measure measure,
		    const uint32_t *row_of, size_t n);
void diff_rows__done(struct diff_rows *rows);

enum diff_verdict {
	DIFF_SAME,
	DIFF_FEW, /* samples: less than 5 are expected on one of the sides */
	DIFF_WITHIN_ERROR,
	DIFF_MORE,
	DIFF_LESS,
};

#define DIFF_ERRORS_MIN 3 /* standard errors from which on a change is one */

struct diff_change {
	double old, new; /* shares of 1; by value: in diff_side's unit, per second */
	double errors;	 /* how many standard errors the difference is; 0: none, or not known */
	enum diff_verdict verdict;
	bool appeared, vanished; /* only the one side has it */
};

struct diff_change diff_rows__change(const struct diff_rows *rows, size_t row);

#endif
