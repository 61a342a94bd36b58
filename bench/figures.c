// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/figures.h"

#include <math.h>
#include <stdlib.h>

#define COVERAGE    0.95
#define JUDGED_FROM 3
#define SURE_FROM   6 /* the whole interval of five values covers less than COVERAGE */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Returns the rank k of the interval's ends: with a probability of COVERAGE or more, at least k of
 * @n values are below the true median and at least k above. It is the largest such k, or 1 if no k
 * reaches COVERAGE. */
static size_t rank(size_t n)
{
	double outside = 2 * pow(0.5, n), term = pow(0.5, n);
	size_t k = 1;

	/* Beyond 1000 values pow() underflows; the normal approximation is exact enough there. */
	if (n > 1000)
		return (size_t)((n - 1.96 * sqrt(n)) / 2);
	for (;;) {
		term *= (double)(n - k + 1) / k;
		outside += 2 * term;
		if (outside > 1 - COVERAGE)
			return k;
		k++;
	}
}

struct figure figure__of(double *values, size_t n)
{
	struct figure figure = { .n = n, .unsure = n < SURE_FROM };
	size_t k;

	if (!n)
		return (struct figure) {};
	qsort(values, n, sizeof(*values), compare);
	k = figure.unsure ? 1 : rank(n);
	figure.median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
	figure.low = values[k - 1];
	figure.high = values[n - k];
	return figure;
}

struct figure figure__ratio(const double *a, const double *b, size_t n)
{
	double *ratios = calloc(n + 1, sizeof(*ratios));
	struct figure figure = {};
	size_t n_ratios = 0;

	for (size_t i = 0; ratios && i < n; i++)
		if (b[i] != 0)
			ratios[n_ratios++] = a[i] / b[i];
	if (n_ratios)
		figure = figure__of(ratios, n_ratios);
	free(ratios);
	return figure;
}

bool figure__differs(const struct figure *ratio)
{
	double margin = ratio->unsure && ratio->low > 0 ? ratio->high / ratio->low : 1;

	return ratio->n >= JUDGED_FROM && (ratio->low > margin || ratio->high * margin < 1);
}
