// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/alloc_windows.h"

#include <math.h>

#include "core/base/util.h"

#define NORMAL_95 1.96 /* standard deviations for a probability of 95 % */
#define AVERAGED  16   /* windows in the averages that predict the next one */

void windows__init(struct windows *windows, double percent, unsigned n_cpus, double assumed_ns,
		   uint64_t seed, uint64_t now_ns)
{
	double rate = percent / 100 * n_cpus;

	*windows = (struct windows) { .rate = rate,
				      .left_ns = rate * NSEC_PER_SEC,
				      .filled_ns = now_ns,
				      .open_always = true,
				      .seed = seed,
				      .width_ns = WINDOW_WIDTH_NS,
				      .assumed_ns = assumed_ns,
				      .began_ns = now_ns };
}

static void fill(struct windows *windows, double spent_ns, uint64_t now_ns)
{
	windows->left_ns += windows->rate * (now_ns - windows->filled_ns) - spent_ns;
	windows->left_ns = min_of(windows->left_ns, windows->rate * NSEC_PER_SEC);
	windows->filled_ns = now_ns;
}

/* Draws a gap of 0.5 to 1.5 times the average, by splitmix64. */
static uint64_t draw_gap(struct windows *windows)
{
	uint64_t x = windows->seed += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	x ^= x >> 31;
	return windows->gap_ns * (0.5 + (x >> 11) * 0x1p-53);
}

static void average(double *of, double value, uint64_t n)
{
	*of += (value - *of) / min_of(max_of(n, 1U), (uint64_t)AVERAGED);
}

/* Computes the average gap that fits the budget. A debt is repaid over about eight windows. */
static void plan(struct windows *windows)
{
	double debt = windows->left_ns < 0 ? -windows->left_ns / 8 : 0;
	double gap_ns = (windows->spent_ns + debt) / windows->rate;

	windows->gap_ns = max_of(min_of(gap_ns, (double)WINDOW_GAP_MAX), (double)WINDOW_GAP_MIN);
}

bool windows__spend(struct windows *windows, double ns, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - windows->filled_ns;

	if (!windows->open_always || windows->rate <= 0 || !passed_ns)
		return false;
	windows->always_ns += passed_ns;
	fill(windows, ns, now_ns);
	if (windows->left_ns >= 0)
		return false;
	windows->open_always = false;
	windows->left_ns = 0; /* a burst is not a debt of the windows */
	plan(windows);
	windows->next_ns = now_ns + draw_gap(windows) / 2;
	windows->had_before = false;
	windows->n_averaged = 0;
	return true;
}

bool windows__is_due(const struct windows *windows, uint64_t now_ns)
{
	return !windows->open_always && now_ns >= windows->next_ns;
}

void windows__open(struct windows *windows, uint64_t now_ns)
{
	windows->next_ns = now_ns + draw_gap(windows);
	windows->n++;
}

static void add(struct alloc_sums *sums, const struct alloc_sums *seen)
{
	sums->calls += seen->calls;
	sums->bytes += seen->bytes;
	sums->less_bytes += seen->less_bytes;
	sums->value += seen->value;
	sums->gaps += seen->gaps;
	sums->gap_ns += seen->gap_ns;
	sums->sample_ns += seen->sample_ns;
	sums->trap_ticks += seen->trap_ticks;
	sums->own_ticks += seen->own_ticks;
}

/* Adds a window to the estimate, which is a ratio: bytes per life of threads, times all life. The
 * deviation of a window is the difference between its value and the value that its life would have.
 * The variance of the sum assumes that the rate changes slowly, with noise around it. It is half of
 * the sum of squared differences of neighbours, as for systematic samples. */
static void estimate(struct windows *windows, const struct alloc_sums *seen, double times,
		     double life_ns)
{
	double off, step;

	windows->value += times * seen->value;
	windows->bytes += times * seen->bytes;
	windows->less_bytes += times * seen->less_bytes;
	windows->calls += times * seen->calls;
	windows->life_ns += life_ns;
	windows->squared_life += life_ns * life_ns;
	off = times * seen->value - windows->value / windows->life_ns * life_ns;
	step = off - windows->off_before;
	windows->variance += windows->had_before ? step * step / 2 : 0;
	windows->off_before = off;
	windows->had_before = true;
}

/* Adapts the width of the next window, so that no thread is cut off. */
static void fit(struct windows *windows, uint64_t lost_ns)
{
	if (lost_ns >= WINDOW_LOST_MAX_NS)
		windows->width_ns = max_of(windows->width_ns / 2, WINDOW_WIDTH_MIN_NS);
	else if (lost_ns < WINDOW_LOST_MAX_NS / 4)
		windows->width_ns =
			min_of(windows->width_ns + windows->width_ns / 16, WINDOW_WIDTH_NS);
}

bool windows__close(struct windows *windows, double spent_ns, const struct alloc_sums *seen,
		    double times, double life_ns, uint64_t now_ns)
{
	uint64_t n = windows->n_averaged += life_ns > 0;
	double calls_ns;

	fill(windows, spent_ns, now_ns);
	average(&windows->spent_ns, spent_ns, windows->n);
	plan(windows);
	if (life_ns <= 0)
		return false;
	windows->n_used++;
	average(&windows->bytes_per_window, seen->bytes, n);
	average(&windows->calls_per_window, seen->calls, n);
	add(&windows->sums, seen);
	estimate(windows, seen, times, life_ns);
	fit(windows, seen->lost_ns);
	calls_ns = windows->calls_per_window * windows__cost_ns(windows);
	windows->open_always = n >= 4 * AVERAGED && windows->left_ns >= 0 &&
			       calls_ns < windows->rate * windows->width_ns / 4;
	return windows->open_always;
}

static uint64_t ticks(const struct windows *windows)
{
	return windows->sums.trap_ticks + windows->sums.own_ticks;
}

double windows__cost_ns(const struct windows *windows)
{
	const struct alloc_sums *sums = &windows->sums;
	double trapped_ns;

	if (ticks(windows) < WINDOW_TICKS_MIN || !sums->gaps)
		return windows->assumed_ns;
	trapped_ns = (double)sums->gap_ns * sums->trap_ticks / ticks(windows) - sums->sample_ns;
	return max_of(trapped_ns / sums->gaps, 0.0);
}

uint64_t windows__period(const struct windows *windows, uint64_t period)
{
	double desired = windows->bytes_per_window / WINDOW_SAMPLES;

	return period <= 1 ? period : max_of(min_of(desired, (double)period), 1.0);
}

/* Returns the relative error of the fraction of ticks in the probe. */
static double cost_error(const struct windows *windows)
{
	uint64_t n = ticks(windows);

	if (n < WINDOW_TICKS_MIN || !windows->sums.trap_ticks)
		return WINDOW_ASSUMED_ERROR;
	return sqrt((double)windows->sums.own_ticks / windows->sums.trap_ticks / n +
		    WINDOW_COST_ERROR * WINDOW_COST_ERROR);
}

/* Returns Student's t for 95 %, to the first order of 1/n (Cornish and Fisher). Windows with
 * unequal lives count as the number of equal ones with the same information (Kish). */
static double deviations(const struct windows *windows)
{
	double n = windows->life_ns * windows->life_ns / windows->squared_life;

	return NORMAL_95 + (NORMAL_95 * NORMAL_95 * NORMAL_95 + NORMAL_95) / 4 / max_of(n - 1, 1.0);
}

double windows__margin(const struct windows *windows)
{
	/* The change for an eighth of the cost; the cost's error is a part of the cost. */
	double by_cost = 8 * (windows->bytes - windows->less_bytes) * cost_error(windows);
	double by_chance;

	if (windows->n_used < 10 || windows->value <= 0)
		return -1;
	if (windows->bytes > 0)
		by_cost *= windows->value / windows->bytes;
	by_chance = deviations(windows) * sqrt(windows->variance);
	by_cost *= NORMAL_95;
	return sqrt(by_chance * by_chance + by_cost * by_cost) / windows->value;
}
