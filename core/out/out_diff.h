/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUT_DIFF_H
#define BRAID_OUT_DIFF_H

#include "core/out/out_rows.h"
#include "core/out/output.h"
#include "core/profile/diff_rows.h"

/* What tables and trees of two recordings share. */

/* What is compared with what, and how: above a text. */
void out_diff__heading(const struct diff *diff, FILE *out);

/* The columns of a change; what stands in them ends with two blanks. */
const char *out_diff__titles(const struct diff *diff);
#define OUT_DIFF_BYTES 160
void out_diff__columns(const struct diff *diff, const struct diff_change *change, char *buf,
		       size_t size);

/* An SGR sequence for rows with this change: red is more, blue less, faint within the error. */
const char *out_diff__colour(const struct diff_change *change);

/* "more", "less", "within error", "too few samples" or "same". */
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
	size_t n;		     /* of these: groups alone if the table is of groups, */
	size_t n_put;		     /* and those of them that opts->rows leaves */
};

/* 0 or -ENOMEM; call out_diff_rows__done in any case. @opts is borrowed. */
int out_diff_rows__init(struct out_diff_rows *table, const struct output_opts *opts);
void out_diff_rows__done(struct out_diff_rows *table);

/* The table of opts->diff, as output__table. */
int out_diff__table(const struct output_opts *opts, FILE *out);

#endif
