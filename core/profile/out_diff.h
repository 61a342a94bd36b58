/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUT_DIFF_H
#define BRAID_OUT_DIFF_H

#include "core/profile/diff_rows.h"
#include "core/profile/output.h"

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

/* The table of opts->diff, as output__table. */
int out_diff__table(const struct output_opts *opts, FILE *out);

#endif
