// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/alloc_windows.h"

#include "core/base/util.h"

void windows__init(struct windows *windows, double percent, unsigned n_cpus, uint64_t seed,
		   uint64_t now_ns)
{
	double rate = percent / 100 * n_cpus;

	*windows = (struct windows) { .rate = rate,
				      .left_ns = rate * NSEC_PER_SEC,
				      .filled_ns = now_ns,
				      .open_always = true,
				      .seed = seed,
				      .began_ns = now_ns };
}

static void fill(struct windows *windows, double spent_ns, uint64_t now_ns)
{
	windows->left_ns += windows->rate * (now_ns - windows->filled_ns) - spent_ns;
	windows->left_ns = min_of(windows->left_ns, windows->rate * NSEC_PER_SEC);
	windows->filled_ns = now_ns;
}

/* 0.5 to 1.5 times the average: splitmix64. */
static uint64_t draw_gap(struct windows *windows)
{
	uint64_t x = windows->seed += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	x ^= x >> 31;
	return windows->gap_ns * (0.5 + (x >> 11) * 0x1p-53);
}

/* The average gap that keeps the budget, if a window costs so much; what is overdrawn is paid back
 * over some windows. */
static void plan(struct windows *windows, double spent_ns)
{
	double debt = windows->left_ns < 0 ? -windows->left_ns / 8 : 0;
	double gap_ns = (spent_ns + debt) / windows->rate;

	windows->gap_ns = max_of(min_of(gap_ns, (double)WINDOW_GAP_MAX), (double)WINDOW_NS);
}

bool windows__spend(struct windows *windows, double ns, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - windows->filled_ns;

	if (!windows->open_always || windows->rate <= 0 || !passed_ns)
		return false;
	windows->watched_ns += passed_ns;
	fill(windows, ns, now_ns);
	if (windows->left_ns >= 0)
		return false;
	windows->open_always = false;
	windows->told_ns = now_ns;
	plan(windows, ns * WINDOW_NS / passed_ns);
	windows->next_ns = now_ns + draw_gap(windows) / 2;
	return true;
}

bool windows__is_due(const struct windows *windows, uint64_t now_ns)
{
	return !windows->open_always && now_ns >= windows->next_ns;
}

double windows__open(struct windows *windows, uint64_t now_ns)
{
	uint64_t end_ns = now_ns + WINDOW_NS, gap_ns = draw_gap(windows), told_ns;

	/* The next one comes when that has passed, and stands for the other half, or for more if it
	 * comes later than it should. */
	windows->next_ns = end_ns + gap_ns;
	told_ns = windows->told_ns;
	windows->told_ns = end_ns + gap_ns / 2;
	windows->n++;
	windows->watched_ns += WINDOW_NS;
	return (double)(windows->told_ns - min_of(told_ns, now_ns)) / WINDOW_NS;
}

bool windows__close(struct windows *windows, double spent_ns, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - windows->filled_ns;

	fill(windows, spent_ns, now_ns);
	plan(windows, spent_ns);
	/* From here on all is watched; the window has spoken for a little of that. */
	if (windows->left_ns > windows->rate * NSEC_PER_SEC / 2 && passed_ns &&
	    spent_ns < windows->rate * WINDOW_NS / 2)
		windows->open_always = true;
	return windows->open_always;
}

double windows__share(const struct windows *windows, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - windows->began_ns;

	return passed_ns ? min_of(1.0, (double)windows->watched_ns / passed_ns) : 1;
}
