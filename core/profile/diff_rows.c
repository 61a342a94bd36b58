// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/diff_rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/profile/frames.h"

#define EXPECTED_MIN 5 /* samples from which the normal approximation holds */

/* The rows with a number other than 0, so that only these need to be cleared. */
struct touched {
	uint32_t *rows;
	size_t n;
};

struct counting {
	struct diff_rows *rows;
	const struct diff_side *side;
	int number; /* number of the side */
	enum diff_measure measure;
	const uint32_t *row_of;
	uint32_t *owners;      /* by node, for DIFF_SCRIPT */
	uint32_t *seen;	       /* by row: the last share that counted for it, + 1 */
	double *weight;	       /* by row: sum of the thread */
	double *sum, *squares; /* by row: sums over the role's threads */
	double *products;      /* by row: sum of the threads' products of weight and whole */
	struct touched of_thread, of_role;
	double thread_whole, whole, whole_squares; /* sums of the thread, and of the role */
	size_t threads;				   /* number of the role's threads */
};

static void counting_done(struct counting *counting)
{
	free(counting->owners);
	free(counting->seen);
	free(counting->weight);
	free(counting->sum);
	free(counting->squares);
	free(counting->products);
	free(counting->of_thread.rows);
	free(counting->of_role.rows);
}

static int counting_init(struct counting *counting)
{
	const struct profile *both = counting->rows->diff->both;
	size_t n = counting->rows->n;

	counting->owners = calloc(both->n_nodes, sizeof(*counting->owners));
	counting->seen = calloc(n, sizeof(*counting->seen));
	counting->weight = calloc(n, sizeof(*counting->weight));
	counting->sum = calloc(n, sizeof(*counting->sum));
	counting->squares = calloc(n, sizeof(*counting->squares));
	counting->products = calloc(n, sizeof(*counting->products));
	counting->of_thread.rows = calloc(n, sizeof(*counting->of_thread.rows));
	counting->of_role.rows = calloc(n, sizeof(*counting->of_role.rows));
	if (!counting->owners || !counting->seen || !counting->weight || !counting->sum ||
	    !counting->squares || !counting->products || !counting->of_thread.rows ||
	    !counting->of_role.rows)
		return -ENOMEM;
	return frames__script_owners(both, counting->owners);
}

static void hit(struct counting *counting, uint32_t row, size_t number)
{
	const struct diff_share *share = &counting->side->shares[number];
	struct diff_sum *sum = &counting->rows->rows[row].of[counting->number];

	if (counting->seen[row] == number + 1)
		return;
	counting->seen[row] = number + 1;
	sum->weight += share->weight;
	sum->squares += share->squares;
	if (!counting->weight[row])
		counting->of_thread.rows[counting->of_thread.n++] = row;
	counting->weight[row] += share->weight;
}

static void count_share(struct counting *counting, size_t number)
{
	const struct profile *both = counting->rows->diff->both;
	const struct diff_share *share = &counting->side->shares[number];
	uint32_t node = share->node;

	counting->thread_whole += share->weight;
	if (counting->measure == DIFF_SCRIPT)
		node = counting->owners[node];
	hit(counting, counting->row_of[node], number);
	if (counting->measure != DIFF_TOTAL)
		return;
	while (node && (node = both->nodes[node].parent))
		hit(counting, counting->row_of[node], number);
}

static void end_thread(struct counting *counting)
{
	for (size_t i = 0; i < counting->of_thread.n; i++) {
		uint32_t row = counting->of_thread.rows[i];
		double weight = counting->weight[row];

		if (!counting->sum[row])
			counting->of_role.rows[counting->of_role.n++] = row;
		counting->sum[row] += weight;
		counting->squares[row] += weight * weight;
		counting->products[row] += weight * counting->thread_whole;
		counting->weight[row] = 0;
	}
	counting->of_thread.n = 0;
	counting->whole += counting->thread_whole;
	counting->whole_squares += counting->thread_whole * counting->thread_whole;
	counting->thread_whole = 0;
	counting->threads++;
}

/* Adds the spread of a role. A single thread has no spread. */
static void end_role(struct counting *counting)
{
	double n = counting->threads, factor = n > 1 ? n / (n - 1) : 0;

	for (size_t i = 0; i < counting->of_role.n; i++) {
		uint32_t row = counting->of_role.rows[i];
		double weight = counting->sum[row];
		struct diff_sum *sum = &counting->rows->rows[row].of[counting->number];

		sum->spread += factor * (counting->squares[row] - weight * weight / n);
		sum->slope += factor * (counting->products[row] - weight * counting->whole / n);
		counting->sum[row] = counting->squares[row] = counting->products[row] = 0;
	}
	counting->of_role.n = 0;
	counting->rows->spread[counting->number] +=
		factor * (counting->whole_squares - counting->whole * counting->whole / n);
	counting->whole = counting->whole_squares = 0;
	counting->threads = 0;
}

static int count_side(struct diff_rows *rows, int number, enum diff_measure measure,
		      const uint32_t *row_of)
{
	struct counting counting = { .rows = rows,
				     .side = &rows->diff->sides[number],
				     .number = number,
				     .measure = measure,
				     .row_of = row_of };
	const struct diff_share *shares = counting.side->shares;
	size_t n = counting.side->n_shares;
	int ret = counting_init(&counting);

	for (size_t i = 0; !ret && i < n; i++) {
		count_share(&counting, i);
		if (i + 1 == n || shares[i + 1].thread != shares[i].thread)
			end_thread(&counting);
		if (i + 1 == n || shares[i + 1].role != shares[i].role)
			end_role(&counting);
	}
	counting_done(&counting);
	return ret;
}

int diff_rows__init(struct diff_rows *rows, const struct diff *diff, enum diff_measure measure,
		    const uint32_t *row_of, size_t n)
{
	int ret = 0;

	*rows = (struct diff_rows) { .diff = diff,
				     .rows = calloc(n + 1, sizeof(*rows->rows)),
				     .n = n };
	if (!rows->rows)
		return -ENOMEM;
	for (int i = 0; !ret && i < DIFF_SIDES; i++)
		ret = count_side(rows, i, measure, row_of);
	return ret;
}

void diff_rows__done(struct diff_rows *rows)
{
	free(rows->rows);
	memset(rows, 0, sizeof(*rows));
}

/* ---- the test ---- */

/* Returns the factor by which clusters increase the variance over that of independent samples. */
static double design_effect(const struct diff_rows *rows, int number, const struct diff_sum *sum)
{
	const struct diff_side *side = &rows->diff->sides[number];
	double share = sum->weight / side->whole, clusters, samples;

	if (rows->diff->by_value) {
		clusters = sum->spread;
		samples = sum->squares;
	} else {
		clusters =
			sum->spread - 2 * share * sum->slope + share * share * rows->spread[number];
		samples = share * (1 - share) * side->squares;
	}
	return samples > 0 && clusters > samples ? clusters / samples : 1;
}

/* Sets *@ret to the square of the standard error of new - old. Returns true if there are enough
 * samples for the test. */
static bool find_variance(const struct diff_rows *rows, const struct diff_row *row, double *ret)
{
	const struct diff_side *sides = rows->diff->sides;
	double all = 0, of = 0, per[DIFF_SIDES], pooled;
	bool enough = true;

	/* `per`: by side, the share of the whole that one sample has; by value, its weight per
	 * second */
	for (int i = 0; i < DIFF_SIDES; i++) {
		const struct diff_sum *sum = &row->of[i];
		double exposure = sides[i].seconds;

		if (!rows->diff->by_value) {
			exposure = sides[i].whole * sides[i].whole / sides[i].squares;
			of += exposure * (sum->weight / sides[i].whole);
			per[i] = 1 / exposure;
		} else {
			of += sum->weight;
			per[i] = (sum->weight > 0 ? sum->squares / sum->weight
						  : sides[i].squares / sides[i].whole) /
				 exposure;
		}
		all += exposure;
	}
	pooled = of / all;
	*ret = 0;
	for (int i = 0; i < DIFF_SIDES; i++) {
		enough = enough && pooled / per[i] >= EXPECTED_MIN &&
			 (rows->diff->by_value || (1 - pooled) / per[i] >= EXPECTED_MIN);
		*ret += (rows->diff->by_value ? pooled : pooled * (1 - pooled)) * per[i] *
			design_effect(rows, i, &row->of[i]);
	}
	return enough;
}

struct diff_change diff_rows__change(const struct diff_rows *rows, size_t number)
{
	const struct diff_row *row = &rows->rows[number];
	const struct diff_side *sides = rows->diff->sides;
	struct diff_change change = { .verdict = DIFF_FEW };
	double values[DIFF_SIDES], difference, variance;
	bool enough;

	for (int i = 0; i < DIFF_SIDES; i++) {
		double by = rows->diff->by_value ? sides[i].seconds : sides[i].whole;

		values[i] = by > 0 ? row->of[i].weight / by : 0;
	}
	change.old = values[DIFF_OLD];
	change.new = values[DIFF_NEW];
	change.appeared = !row->of[DIFF_OLD].weight && row->of[DIFF_NEW].weight;
	change.vanished = row->of[DIFF_OLD].weight && !row->of[DIFF_NEW].weight;
	if (!(sides[DIFF_OLD].whole > 0) || !(sides[DIFF_NEW].whole > 0))
		return change;
	difference = change.new - change.old;
	enough = find_variance(rows, row, &variance);
	/* Values that differ by rounding only are the same. */
	if (fabs(difference) <= 1e-12 * max_of(change.old, change.new)) {
		change.verdict = DIFF_SAME;
		return change;
	}
	if (!enough || !(variance > 0))
		return change;
	change.errors = fabs(difference) / sqrt(variance);
	change.verdict = change.errors < DIFF_ERRORS_MIN ? DIFF_WITHIN_ERROR
			 : difference > 0		 ? DIFF_MORE
							 : DIFF_LESS;
	return change;
}
