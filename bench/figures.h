/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FIGURES_H
#define BRAID_FIGURES_H

#include <stdbool.h>
#include <stddef.h>

/* A figure from repeated measurements: their median, and an interval that contains the true median
 * with a probability of at least 95 %, whatever the distribution. The interval is from the k-th
 * smallest to the k-th largest value, with k from the binomial distribution. Fewer than six values
 * give no such interval: it is then from the smallest to the largest, and @unsure is set. */
struct figure {
	double median, low, high;
	size_t n; /* number of values; 0: there is no figure */
	bool unsure;
};

/* Returns the figure of @values. Sorts @values. */
struct figure figure__of(double *values, size_t n);

/* Returns the figure of a[i] / b[i], measurements of the same round, under nearly the same
 * conditions. Leaves out rounds with a b of 0. */
struct figure figure__ratio(const double *a, const double *b, size_t n);

/* Returns true if a ratio differs from 1 by more than the noise: its interval does not contain 1.
 * An unsure interval must be farther from 1 than it is wide. Returns false for one or two values,
 * which do not show the noise. */
bool figure__differs(const struct figure *ratio);

#endif
