/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUTPUT_H
#define BRAID_OUTPUT_H

#include <stdio.h>

#include "core/profile.h"

struct output_opts {
	int annotate; /* append the kind's suffix to every name */
	size_t rows;  /* table: at most so many rows; 0: all */
};

/* All writers write the whole profile to `out` and return 0, -ENOMEM, or the negative errno of a
 * failed write (the stream is flushed before they return). */

/* One row per function (name, file and kind; lines do not split a function): self and total
 * weight and percentages, kind. Total counts a stack once however often the function recurs in
 * it. Sorted by self, then total, then name. */
int output__table(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* `root;...;leaf COUNT`, one line per distinct stack, sorted. `;` inside a name becomes `:`,
 * control characters become `?`. */
int output__folded(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* One self-contained HTML page: interactive flame graph, no network. */
int output__flame_html(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* One self-contained SVG with the same interactions. */
int output__flame_svg(const struct profile *profile, const struct output_opts *opts, FILE *out);

#endif
