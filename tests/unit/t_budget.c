// SPDX-License-Identifier: GPL-2.0-or-later
/* Costs and weights of samples: the kernel half's budget of a CPU, at simulated times. */
#include "core/base/util.h"
#include "tests/tap.h"

#include "tests/unit/tables.h"

#define PERMILLE  20
#define WINDOW_NS BUDGET_WINDOW_NS
#define FULL_NS	  ((int64_t)(WINDOW_NS / 1000 * PERMILLE))
#define NOW_NS	  (1000 * NSEC_PER_SEC)
#define ONE	  1 /* events */
#define RARE	  2

static struct budget_rec *budget;
static struct event_budget *one, *rare;

static void test_fill(void)
{
	*budget = (struct budget_rec) { .pool.filled_ns = NOW_NS };
	one->share.filled_ns = NOW_NS;
	ok(budget__has(budget, ONE, NOW_NS + WINDOW_NS / 2) &&
		   budget->pool.left_ns == FULL_NS / 4 && one->share.left_ns == FULL_NS / 8,
	   "half a window fills half of the pool, and half of the event's share");
	budget__has(budget, ONE, NOW_NS + 10 * WINDOW_NS);
	ok(budget->pool.left_ns == FULL_NS / 2 && one->share.left_ns == FULL_NS / 4,
	   "ten windows fill all of it, and no more");
	budget->pool.left_ns = one->share.left_ns = -1;
	ok(!budget__has(budget, ONE, NOW_NS + 10 * WINDOW_NS), "the same moment adds nothing");
}

/* A program reads the clock. Another one interrupts it and fills the budget. Then the first one
 * fills it. */
static void test_fill_from_the_past(void)
{
	*budget = (struct budget_rec) { .pool = { NOW_NS, -FULL_NS } };
	one->share = (struct budget_share) { NOW_NS, -FULL_NS };
	ok(!budget__has(budget, ONE, NOW_NS - 1) && budget->pool.left_ns == -FULL_NS,
	   "an earlier time than the last one adds nothing");
	is_int(budget->pool.filled_ns, NOW_NS, "and time does not go back");
	ok(!budget__has(budget, ONE, 0) && budget->pool.left_ns == -FULL_NS, "however early it is");
	ok(!budget__has(budget, ONE, NOW_NS + WINDOW_NS) && budget->pool.left_ns == -FULL_NS / 2,
	   "then it fills as before");
}

static void test_spend(void)
{
	*budget = (struct budget_rec) { .pool = { NOW_NS, 10 } };
	one->share = (struct budget_share) { NOW_NS, 3 };
	host.now_ns = NOW_NS;
	budget__spend(ONE, NOW_NS + 5);
	ok(budget->pool.left_ns == 10 && one->share.left_ns == 3 && !budget->spent_ns,
	   "a sample of a later time costs nothing");
	budget__spend(ONE, NOW_NS - 5);
	ok(budget->pool.left_ns == 10 && one->share.left_ns == -2 && budget->spent_ns == 5 &&
		   one->spent_ns == 5,
	   "one of an earlier time costs that, of the event's share");
	budget__spend(ONE, NOW_NS - 5);
	ok(budget->pool.left_ns == 5 && one->share.left_ns == -2, "and then of the pool");
	budget__spend(ONE, NOW_NS - NSEC_PER_SEC);
	is_int(budget->pool.left_ns, -FULL_NS, "the pool's debts are bounded");
}

/* The rare event occurs when the frequent one has used its whole share. */
static void test_starvation(void)
{
	uint64_t now_ns = NOW_NS;
	int n = 0;

	*budget = (struct budget_rec) {};
	for (; n < 10000 && budget__has(budget, ONE, now_ns); n++, now_ns += 1000) {
		host.now_ns = now_ns + 5000;
		budget__spend(ONE, now_ns);
	}
	ok(n && n < 10000, "a frequent event has used up what it may: %d", n);
	ok(budget__has(budget, RARE, now_ns), "a rare one still has its share");
}

static void test_period(void)
{
	const uint64_t period_ns = 16 * PERIOD_LEAST_NS;

	*budget = (struct budget_rec) {};
	one->changed_ns = NOW_NS;
	one->period_ns = period_ns;
	is_int(budget__period(budget, ONE, NOW_NS - 1), period_ns,
	       "a time before the last change does not lower the period");
	ok(one->changed_ns == NOW_NS && one->period_ns == period_ns, "nor changes anything");
	is_int(budget__period(budget, ONE, NOW_NS + PERIOD_LOWERED_NS - 1), period_ns,
	       "nor does a time that is too short");
	is_int(budget__period(budget, ONE, NOW_NS + PERIOD_LOWERED_NS), period_ns / 2,
	       "samples that cost nothing do so later");
	one->spent_ns = budget->spent_ns = NSEC_PER_SEC;
	is_int(budget__period(budget, ONE, NOW_NS), period_ns / 2,
	       "nor is it raised by a time before the change");
	ok(budget__period(budget, ONE, NOW_NS + PERIOD_LOWERED_NS + PERIOD_RAISED_NS) > period_ns,
	   "but by what samples cost afterwards");
	budget__period(budget, RARE, NOW_NS);
	rare->period_ns = period_ns;
	budget->spent_ns += NSEC_PER_SEC;
	ok(budget__period(budget, RARE, NOW_NS + PERIOD_LOWERED_NS) <= period_ns,
	   "those of another event do not raise it");
}

struct sums {
	uint64_t n, total; /* intervals */
	uint64_t sampled, weight, sampled_total;
	uint64_t weight_short; /* weight of samples shorter than 100 us */
};

static void end_interval(struct interval_clock *clock, uint64_t ns, struct sums *sums)
{
	struct worth worth;

	sums->n++;
	sums->total += ns;
	if (!budget__choose(ONE, clock, ns, NOW_NS, &worth))
		return;
	is_int(worth.value == ns ? 0 : worth.value, 0, "a sample has its own value");
	sums->sampled++;
	sums->weight += worth.weight;
	sums->sampled_total += worth.total;
	sums->weight_short += ns < 100000 ? worth.weight : 0;
}

/* Two threads; most waits of the first one are short. */
static void test_worth(void)
{
	const struct rest_rec *rest = &one->rests[rest_epoch & 1];
	struct interval_clock clocks[2] = {};
	struct sums sums = {};
	uint64_t n_short = 0;

	*budget = (struct budget_rec) {};
	one->changed_ns = NOW_NS;
	one->period_ns = 1 << 18;
	for (int i = 0; i < 300; i++) {
		uint64_t ns = i % 10 ? 49000 + i * 7 : 900000;

		n_short += ns < 100000;
		end_interval(&clocks[0], ns, &sums);
		end_interval(&clocks[1], 200000, &sums);
	}
	ok(sums.sampled < sums.n && sums.sampled_total < sums.total, "some are sampled");
	ok(sums.sampled_total + rest->total - sums.total + 2 * PERIOD_LEAST_NS <
		   2 * PERIOD_LEAST_NS + 1,
	   "totals and the rest are the sum of all intervals, but for where clocks begin");
	ok(sums.weight_short * 20 > n_short * 19 && sums.weight_short * 20 < n_short * 21,
	   "weights of short ones are as many as there are: %d of %d", (int)sums.weight_short,
	   (int)n_short);
	ok(sums.weight + rest->weight > sums.n * 0.95 && sums.weight + rest->weight < sums.n * 1.05,
	   "and so are all: %d of %d", (int)(sums.weight + rest->weight), (int)sums.n);
	is_int(one->occurrences, sums.n, "which are counted");
}

/* An interval of 1 ns in which the clock expires does not stand for a million intervals. */
static void test_shortest(void)
{
	struct interval_clock clock = {};
	struct worth worth;

	*budget = (struct budget_rec) {};
	one->changed_ns = NOW_NS;
	one->period_ns = 1 << 18;
	budget__choose(ONE, &clock, 50000, NOW_NS, &worth);
	clock.ns = (1 << 18) - 1;
	ok(budget__choose(ONE, &clock, 1, NOW_NS, &worth) && worth.value == 1, "1 ns is sampled");
	ok(worth.total == 1 << 18 && worth.weight == 2 * WEIGHT_TIMES_MAX,
	   "its weight is bounded by the intervals that there were");
}

/* User space reads the rest of an epoch; the next epoch begins with an empty rest. */
static void test_epochs(void)
{
	struct interval_clock clock = {};
	struct worth worth;

	*budget = (struct budget_rec) {};
	one->changed_ns = NOW_NS;
	one->period_ns = 1 << 18;
	for (int i = 0; i < 4; i++)
		ok(!budget__choose(ONE, &clock, 50000, NOW_NS, &worth), "an interval is too short");
	is_int(one->rests[rest_epoch & 1].total, 200000, "the rest has it");
	is_int(one->rests[rest_epoch & 1].weight, 4, "and the others");
	rest_epoch++;
	ok(!budget__choose(ONE, &clock, 100000, NOW_NS, &worth),
	   "a clock begins anew in the next epoch");
	is_int(one->rests[rest_epoch & 1].total, 100000, "whose rest is its own");
	ok(budget__choose(ONE, &clock, 1 << 18, NOW_NS, &worth) && worth.weight == 1 &&
		   worth.total == 1 << 18,
	   "an interval as long as the period stands for itself alone");
}

/* Occurrences of equal weight while the budget is empty. */
static void test_counted(void)
{
	struct worth worth = { 1, 1, 1 };

	*budget = (struct budget_rec) { .pool = { NOW_NS, -FULL_NS } };
	rare->share = (struct budget_share) { NOW_NS, -FULL_NS };
	host__set(&cfg_limited, 1U << RARE);
	for (int i = 0; i < 5; i++)
		ok(!is_due(RARE, NOW_NS, &worth), "without budget an occurrence is not sampled");
	is_int(rare->rests[rest_epoch & 1].weight, 5, "but counted with its event");
	is_int(one->rests[rest_epoch & 1].weight, 0, "and with no other");
	budget->pool.left_ns = 1;
	ok(is_due(RARE, NOW_NS, &worth), "one with budget is sampled");
	ok(worth.value == 1 && worth.weight == 6 && worth.total == 6, "and stands for six");
	is_int(rare->rests[rest_epoch & 1].weight, 0, "which leaves no rest");
	host__set(&cfg_limited, 0);
}

/* Sets the lower half of a 64-bit number (little-endian). */
static void set_period(uint32_t period)
{
	host__set((const volatile uint32_t *)&cfg_periods[RARE], period);
}

/* Tests -c 3. */
static void test_period_of_occurrences(void)
{
	struct worth worth = { 1, 1, 1 };

	set_period(3);
	host__set(&cfg_measured, 1U << RARE);
	occurrences[RARE] = 0;
	for (uint64_t i = 1; i <= 7; i++) {
		struct worth own = { 10 * i, 1, 10 * i };
		int due = is_due(RARE, NOW_NS, &own);

		is_int(due, i % 3 == 0, "each third one is sampled");
		if (due)
			ok(own.value == 10 * i && own.weight == 3 && own.total == 30 * (i - 1),
			   "with its own value, and the sum of the three");
	}
	ok(period_rests[RARE].weight == 1 && period_rests[RARE].total == 70, "the rest is known");
	host__set(&cfg_measured, 0);
	occurrences[RARE] = 2;
	ok(is_due(RARE, NOW_NS, &worth) && worth.value == 1 && worth.weight == 3 &&
		   worth.total == 3,
	   "what is only counted stands for three, too");
	set_period(0);
}

int main(void)
{
	sampler__open();
	HOST_ARRAY(budgets, 1);
	host__set(&cfg_budget_permille, PERMILLE);
	host__set(&cfg_budget_events, 2);
	host__set(&cfg_intervals, 1U << ONE);
	budget = budget__here();
	one = budget__of(budget, ONE);
	rare = budget__of(budget, RARE);
	test_fill();
	test_fill_from_the_past();
	test_spend();
	test_starvation();
	test_period();
	test_worth();
	test_shortest();
	test_epochs();
	test_counted();
	test_period_of_occurrences();
	sampler__close();
	return tap__done();
}
