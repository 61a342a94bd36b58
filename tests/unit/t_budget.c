// SPDX-License-Identifier: GPL-2.0-or-later
/* What samples may cost: the kernel half's budget of a CPU, at times that a test makes up. */
#include "core/base/util.h"
#include "tests/tap.h"

#include "tests/unit/tables.h"

#define PERMILLE  20
#define WINDOW_NS BUDGET_WINDOW_NS
#define FULL_NS	  ((int64_t)(WINDOW_NS / 1000 * PERMILLE))
#define NOW_NS	  (1000 * NSEC_PER_SEC)

static struct budget_rec *budget;

static void test_fill(void)
{
	*budget = (struct budget_rec) { .filled_ns = NOW_NS };
	ok(budget__has(budget, NOW_NS + WINDOW_NS / 2) && budget->left_ns == FULL_NS / 2,
	   "half a window fills half of the budget");
	budget__has(budget, NOW_NS + 10 * WINDOW_NS);
	is_int(budget->left_ns, FULL_NS, "ten windows fill all of it, and no more");
	budget->left_ns = -1;
	ok(!budget__has(budget, NOW_NS + 10 * WINDOW_NS), "the same moment adds nothing");
}

/* A program reads the clock, another one interrupts it and fills, and the first one fills. */
static void test_fill_from_the_past(void)
{
	*budget = (struct budget_rec) { .filled_ns = NOW_NS, .left_ns = -FULL_NS };
	ok(!budget__has(budget, NOW_NS - 1) && budget->left_ns == -FULL_NS,
	   "an earlier time than the last one adds nothing");
	is_int(budget->filled_ns, NOW_NS, "and time does not go back");
	ok(!budget__has(budget, 0) && budget->left_ns == -FULL_NS, "however early it is");
	ok(!budget__has(budget, NOW_NS + WINDOW_NS / 2) && budget->left_ns == -FULL_NS / 2,
	   "then it fills as before");
}

static void test_spend_from_the_future(void)
{
	*budget = (struct budget_rec) { .filled_ns = NOW_NS, .left_ns = 10 };
	host.now_ns = NOW_NS;
	budget__spend(NOW_NS + 5);
	ok(budget->left_ns == 10 && !budget->spent_ns, "a sample of a later time costs nothing");
	budget__spend(NOW_NS - 5);
	ok(budget->left_ns == 5 && budget->spent_ns == 5, "one of an earlier time costs that");
}

static void test_period(void)
{
	const uint64_t period_ns = 16 * PERIOD_LEAST_NS;

	*budget = (struct budget_rec) { .changed_ns = NOW_NS, .period_ns = period_ns };
	is_int(budget__period(budget, NOW_NS - 1), period_ns,
	       "a time before the last change does not lower the period");
	ok(budget->changed_ns == NOW_NS && budget->period_ns == period_ns, "nor changes anything");
	is_int(budget__period(budget, NOW_NS + PERIOD_LOWERED_NS - 1), period_ns,
	       "nor does a time that is too short");
	is_int(budget__period(budget, NOW_NS + PERIOD_LOWERED_NS), period_ns / 2,
	       "samples that cost nothing do so later");
	budget->spent_ns = NSEC_PER_SEC;
	is_int(budget__period(budget, NOW_NS), period_ns / 2,
	       "nor is it raised by a time before the change");
	ok(budget__period(budget, NOW_NS + PERIOD_LOWERED_NS + PERIOD_RAISED_NS) > period_ns,
	   "but by what samples cost afterwards");
}

int main(void)
{
	sampler__open();
	HOST_ARRAY(budgets, 1);
	host__set(&cfg_budget_permille, PERMILLE);
	budget = budget__here();
	test_fill();
	test_fill_from_the_past();
	test_spend_from_the_future();
	test_period();
	sampler__close();
	return tap__done();
}
