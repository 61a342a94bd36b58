/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FIGURES_H
#define BRAID_FIGURES_H

#include <stdbool.h>
#include <stddef.h>

/* One figure out of repeated measurements: their median, and an interval that holds the true one
 * with a probability of 95 % or more, whatever the distribution: from the k-th smallest to the k-th
 * largest value, k by the binomial distribution. Of fewer than six values no interval is that
 * sure: from the smallest to the largest, and `unsure`. */
struct figure {
	double median, low, high;
	size_t n; /* 0: there is no figure */
	bool unsure;
};

/* Sorts `values`. */
struct figure figure__of(double *values, size_t n);

/* Of `a[i] / b[i]`: measurements of the same round, under nearly the same conditions. Rounds with a
 * b of 0 are left out. */
struct figure figure__ratio(const double *a, const double *b, size_t n);

/* Of a ratio: does the interval leave 1 out, and one that is not sure by more than it is wide? Else
 * the difference is smaller than the noise. Of one or two values never: there is nothing to know
 * the noise by. */
bool figure__differs(const struct figure *ratio);

#endif
