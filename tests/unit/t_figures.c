// SPDX-License-Identifier: GPL-2.0-or-later
/* Medians, their intervals, and the test for a difference. */
#include <math.h>
#include <stdint.h>

#include "bench/figures.h"
#include "core/base/util.h"
#include "tests/tap.h"

#define VALUES_MAX 400

/* Ranks of a 95 % interval. The oracle is the table of the sign test of textbooks (Conover,
 * Practical Nonparametric Statistics, by the binomial distribution of p = 1/2). */
static void test_ranks(void)
{
	static const struct {
		int n, k;
	} cases[] = { { 6, 1 },	 { 8, 1 },  { 9, 2 },  { 11, 2 }, { 12, 3 }, { 14, 3 },
		      { 15, 4 }, { 17, 5 }, { 20, 6 }, { 23, 7 }, { 25, 8 }, { 30, 10 } };
	double values[VALUES_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int n = cases[i].n, k = cases[i].k;
		struct figure figure;

		for (int v = 0; v < n; v++) /* 1 to n, unsorted */
			values[v] = 1 + (v * 7) % n;
		if (n % 7 == 0)
			for (int v = 0; v < n; v++)
				values[v] = n - v;
		figure = figure__of(values, n);
		is_int(figure.n, n, "%d values are %d", n, n);
		ok(figure.low == k && figure.high == n + 1 - k, "of %d: %d to %d (%g to %g)", n, k,
		   n + 1 - k, figure.low, figure.high);
		ok(figure.median == (n + 1) / 2.0, "the median of 1 to %d is %g", n, figure.median);
		ok(!figure.unsure, "%d values are enough", n);
	}
}

static void test_few(void)
{
	double five[] = { 5, 1, 4, 2, 3 }, one[] = { 7 };
	struct figure figure = figure__of(five, 5);

	ok(figure.low == 1 && figure.median == 3 && figure.high == 5, "of five: the whole range");
	ok(figure.unsure, "and that is not sure");
	figure = figure__of(one, 1);
	ok(figure.low == 7 && figure.median == 7 && figure.high == 7 && figure.unsure, "of one");
	figure = figure__of(one, 0);
	ok(figure.n == 0 && !figure__differs(&figure), "of none there is no figure");
}

/* Measures how often the interval contains the true median of a skewed distribution. */
static void test_coverage(void)
{
	static const int sizes[] = { 6, 9, 15, 40, 400 };
	uint64_t state = 12345;
	double values[VALUES_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		int n_covered = 0, n_rounds = 4000;

		for (int round = 0; round < n_rounds; round++) {
			struct figure figure;

			for (int v = 0; v < sizes[i]; v++) {
				state = state * 6364136223846793005ULL + 1442695040888963407ULL;
				values[v] = exp(3 * ((double)(state >> 11) / (1ULL << 53)));
			}
			figure = figure__of(values, sizes[i]);
			n_covered += figure.low <= exp(1.5) && figure.high >= exp(1.5);
		}
		ok(n_covered >= 0.94 * n_rounds, "of %d values: %d of %d intervals hold the median",
		   sizes[i], n_covered, n_rounds);
		ok(sizes[i] < 9 || n_covered <= 0.985 * n_rounds,
		   "and are no wider than they must");
	}
}

static void test_ratio(void)
{
	double a[] = { 2, 4, 6, 8, 10, 12, 5 }, b[] = { 1, 2, 3, 4, 5, 6, 0 };
	struct figure ratio = figure__ratio(a, b, 7);

	is_int(ratio.n, 6, "a round without a base is left out");
	ok(ratio.median == 2 && ratio.low == 2 && ratio.high == 2, "each round is twice its own");
	ok(figure__differs(&ratio), "which is a difference");
	ok(a[6] == 5 && b[0] == 1, "the rounds are left as they were");
	ratio = figure__ratio(b, a, 6);
	ok(ratio.median == 0.5 && figure__differs(&ratio), "less is a difference, too");
}

/* Times that vary much more than they differ. */
/* Three to five values cannot prove a small difference, but can prove a large one. */
static void test_unsure(void)
{
	double one[] = { 1, 1, 1, 1, 1, 1 }, close[] = { 1.02, 1.1, 1.2, 1.05, 1.07, 1.04 };
	double far[] = { 20, 25, 22 }, less[] = { 0.2, 0.3, 0.25 };
	struct figure ratio = figure__ratio(close, one, 5);

	ok(!figure__differs(&ratio), "2 to 20 %% more in five rounds");
	ratio = figure__ratio(close, one, 6);
	ok(figure__differs(&ratio), "in six rounds");
	ratio = figure__ratio(far, one, 3);
	ok(figure__differs(&ratio), "20 to 25 times as much in three rounds");
	ratio = figure__ratio(less, one, 3);
	ok(figure__differs(&ratio), "less than a third of it");
	ratio = figure__ratio(far, one, 2);
	ok(!figure__differs(&ratio), "but not in two");
}

static void test_noise(void)
{
	double a[] = { 60, 300, 61, 290, 63, 310, 60, 305 };
	double b[] = { 300, 60, 310, 62, 290, 61, 299, 60 };
	double c[] = { 61.2, 306, 62.2, 295.8, 64.3, 316.2, 61.2, 311.1 };
	struct figure ratio = figure__ratio(a, b, 8);

	ok(!figure__differs(&ratio), "noise is no difference: %g to %g", ratio.low, ratio.high);
	ratio = figure__ratio(c, a, 8);
	ok(figure__differs(&ratio), "2 %% in each round are one, however rounds vary: %g to %g",
	   ratio.low, ratio.high);
	ratio = figure__ratio(a, a, 8);
	ok(!figure__differs(&ratio), "and 1 is none");
}

int main(void)
{
	test_ranks();
	test_few();
	test_coverage();
	test_ratio();
	test_unsure();
	test_noise();
	return tap__done();
}
