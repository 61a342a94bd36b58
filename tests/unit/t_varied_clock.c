// SPDX-License-Identifier: GPL-2.0-or-later
/* The varied period: its bounds, its mean, and the coverage of a program in step with it. Each
 * moment of the program is sampled. The timer and the thread that sets it are simulated; the
 * numbers are the same in each run. */
#include "core/kernel/varied_clock.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/util.h"
#include "tests/tap.h"

#define HOLDS 20000

static uint64_t seed = 1;

static double random_part(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(seed >> 11) / (double)(1ULL << 53);
}

/* Returns the delay of the thread: mostly small, sometimes very large. */
static uint64_t lateness(void)
{
	return (random_part() < 0.02 ? 2e8 : 3e5) * random_part();
}

struct run {
	uint64_t ticks, elapsed_ns, in_first;
	double least, most; /* period, as a fraction of the mean; without regained time */
	double sum;	    /* sum of the periods of all ticks; ns */
	double most_lost;   /* largest loss, as a fraction of the mean */
};

/* Runs the clock over a program whose round takes @round_ns, of which it spends @share in its first
 * function. */
static struct run run(uint64_t mean_ns, int holds, uint64_t round_ns, double share)
{
	uint64_t now = 1000000000ULL, begin = now, tick;
	struct run run = { .least = 2 };
	struct varied_period varied;

	varied_period__begin(&varied, 4711, mean_ns, now);
	while (holds-- > 0) {
		uint64_t next = varied_period__due(&varied) + lateness();
		double period = varied.period_ns + varied.regained_ns;

		for (tick = now + varied.period_ns; tick <= next; tick += varied.period_ns) {
			run.ticks++;
			run.sum += period;
			run.in_first += (double)(tick % round_ns) < share * round_ns;
		}
		run.least = min_of(run.least, period / mean_ns);
		run.most = max_of(run.most, period / mean_ns);
		varied_period__next(&varied, next);
		run.most_lost = max_of(run.most_lost, fabs(varied.lost_ns) / mean_ns);
		now = next;
	}
	run.elapsed_ns = now - begin;
	return run;
}

static void test_mean(uint64_t mean_ns)
{
	struct run got = run(mean_ns, HOLDS, mean_ns, 0.5);
	double mean = got.sum / got.ticks / mean_ns,
	       rate = got.ticks * (double)mean_ns / got.elapsed_ns;
	double per_hold = (double)got.ticks / HOLDS;
	/* Lengths of holds differ by 3.6 % (root mean square). */
	double deviation = 0.036 / sqrt(HOLDS);

	ok(got.least >= 0.95 - 1e-5 && got.least <= 0.951 && got.most <= 1.05 + 1e-5 &&
		   got.most >= 1.049,
	   "%u ns: periods differ by up to 5 %%: %.5f to %.5f", (unsigned)mean_ns, got.least,
	   got.most);
	ok(per_hold >= 29 && per_hold <= 36 + 3e8 / mean_ns, "some %.1f ticks have the same one",
	   per_hold);
	ok(fabs(mean - 1) < 5 * deviation * 1.1, "their mean is what it should be: %.6f", mean);
	/* A restarted timer loses time, which is regained. Otherwise the loss would be half a tick
	 * for each hold. */
	ok(fabs(rate - 1) < 5 * deviation * 1.1 + 2 / got.ticks,
	   "and so are the ticks in a time: %.6f", rate);
	ok(got.most_lost < 2, "never more than two ticks behind: %.3f", got.most_lost);
}

/* For each random period, the opposite one is equally likely. */
static void test_symmetry(void)
{
	double sum = 0, n_longer = 0;
	struct varied_period varied;

	for (int i = 0; i < 1000000; i++) {
		varied_period__begin(&varied, (uint64_t)i << 20, 10000000, 0);
		sum += (double)varied.period_ns / 10000000 - 1;
		n_longer += varied.period_ns > 10000000;
		if (fabs((double)varied.period_ns / 10000000 - 1) < VARIED_LEAST - 1e-6)
			sum += 1e9;
	}
	ok(fabs(sum / 1e6) < 5 * 0.036 / 1000, "1,000,000 first periods: a mean of 1 + %.6f",
	   sum / 1e6);
	ok(fabs(n_longer / 1e6 - 0.5) < 5 * 0.0005, "as many are longer as shorter: %.4f",
	   n_longer / 1e6);
}

static void test_in_step(double hz, double program_hz)
{
	uint64_t mean_ns = 1e9 / hz;
	struct run got = run(mean_ns, HOLDS, 1e9 / program_hz, 0.3);
	double share = (double)got.in_first / got.ticks;

	/* As for the same number of random samples, with a factor for the correlation within a
	 * hold. */
	ok(fabs(share - 0.3) < 3 * 5 * sqrt(0.21 / got.ticks),
	   "%.1f Hz, a program at %.1f Hz: 30 %% is %.2f %%", hz, program_hz, 100 * share);
}

static void test_change(void)
{
	struct varied_period varied;

	varied_period__begin(&varied, 1, 1000000, 1000);
	varied_period__set_mean(&varied, 8000000, 1000 + varied.period_ns * 3 + 500000);
	ok(varied.period_ns > 8000000 * 0.9 && varied.period_ns < 8000000 * 1.05,
	   "another mean, at once");
	ok(varied.lost_ns > 8 * 490000 && varied.lost_ns < 8 * 510000,
	   "half a period was lost, and is half a one of these");
	varied_period__begin(&varied, 1, 1000000, 1000);
	varied_period__next(&varied, 0);
	ok(varied.lost_ns == 0 && varied.since_ns == 0, "a clock that goes backwards");
}

int main(void)
{
	test_mean(10101010);
	test_mean(1001001);
	test_mean(100010);
	test_symmetry();
	test_in_step(99, 99);
	test_in_step(99, 100);
	test_in_step(100, 100);
	test_in_step(100, 50);
	test_in_step(99, 198);
	test_in_step(999, 999);
	test_in_step(999, 1000);
	test_change();
	return tap__done();
}
