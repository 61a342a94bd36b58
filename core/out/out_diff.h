/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUT_DIFF_H
#define BRAID_OUT_DIFF_H

#include "core/out/out_rows.h"
#include "core/out/output.h"
#include "core/profile/diff_rows.h"

/* Functions that tables and trees of two recordings share. */

/* Writes the lines above a text: both recordings, and the basis of the comparison. */
void out_diff__heading(const struct diff *diff, FILE *out);

/* Returns the titles of the columns of a change. out_diff__columns() writes the columns, which end
 * with two blanks. */
const char *out_diff__titles(const struct diff *diff);
#define OUT_DIFF_BYTES 160
void out_diff__columns(const struct diff *diff, const struct diff_change *change, char *buf,
		       size_t size);

/* Returns an SGR sequence for rows with this change: red for more, blue for less, or faint. */
const char *out_diff__colour(const struct diff_change *change);

/* Returns "more", "less", "within error", "too few samples" or "same". */
const char *out_diff__verdict(const struct diff_change *change);

/* The rows of a table of two recordings. */
struct out_diff_rows {
	const struct diff *diff;
	const struct output_opts *opts;
	struct out_rows of;
	struct diff_rows counted;
	enum diff_measure measure;
	struct diff_change *changes; /* by row */
	uint32_t *sorted;	     /* rows that either recording has, the largest change first */
	size_t n;     /* length of `sorted`; contains only groups if the table is of groups */
	size_t n_put; /* number of rows that opts->rows allows */
};

/* Returns 0 or -ENOMEM; the caller calls out_diff_rows__done() in any case. @opts is borrowed. */
int out_diff_rows__init(struct out_diff_rows *table, const struct output_opts *opts);
void out_diff_rows__done(struct out_diff_rows *table);

/* Writes the table of opts->diff, as output__table(). */
int out_diff__table(const struct output_opts *opts, FILE *out);

#endif
