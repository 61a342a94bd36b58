// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/record/governor.h"

#include "core/base/util.h"
#include "tests/tap.h"

#define SEC NSEC_PER_SEC
#define MS  1000000ULL

static void check_budget(void)
{
	struct budget budget;
	uint64_t now = 7 * SEC;

	budget__init(&budget, 5, 2, now); /* 100 ms per second */
	ok(!budget__is_overdrawn(&budget), "not overdrawn at first");
	budget__spend(&budget, 100 * MS, now);
	ok(!budget__is_overdrawn(&budget), "a second's worth may be spent at once");
	budget__spend(&budget, 1, now);
	ok(budget__is_overdrawn(&budget), "and no more");
	budget__spend(&budget, 0, now += 10);
	ok(!budget__is_overdrawn(&budget), "10 ns later that 1 ns is there again");
	budget__spend(&budget, 0, now += 100 * SEC);
	budget__spend(&budget, 100 * MS, now);
	ok(!budget__is_overdrawn(&budget), "after a long time without hits: a second's worth");
	budget__spend(&budget, 1, now);
	ok(budget__is_overdrawn(&budget), "and no more, however long that was");
}

static void check_steady(double percent, bool passes)
{
	struct budget budget;
	uint64_t now = SEC;
	int ticks = 0;

	budget__init(&budget, 5, 4, now);
	for (; ticks < 10000 && !budget__is_overdrawn(&budget); ticks++)
		budget__spend(&budget, percent / 100 * 4 * 100 * MS, now += 100 * MS);
	if (!passes) {
		is_int(ticks, 10000, "%g %% of a limit of 5 %%: for ever", percent);
		return;
	}
	ok(ticks < 10000, "%g %% of a limit of 5 %%: not for ever", percent);
	ok(budget__percent(&budget) > 0.99 * percent && budget__percent(&budget) < 1.01 * percent,
	   "and what it cost is reported: %.2f", budget__percent(&budget));
}

static void check_pace(void)
{
	struct pace pace;

	pace__init(&pace, 5, 99);
	ok(!pace__tick(&pace, 4.9), "below the limit: as it is");
	ok(pace__tick(&pace, 5.1) && pace.slowdown == 2, "above: half the rate");
	for (int i = 0; i < 20; i++)
		pace__tick(&pace, 50);
	is_int(pace.slowdown, 64, "not below 1 Hz");
	ok(!pace__tick(&pace, 50), "then nothing changes any more");
	ok(!pace__tick(&pace, 1) && !pace__tick(&pace, 1) && pace__tick(&pace, 1),
	   "three quiet seconds: twice the rate");
	is_int(pace.slowdown, 32, "which is that");
	ok(!pace__tick(&pace, 1) && !pace__tick(&pace, 2.4) && !pace__tick(&pace, 1),
	   "but not if twice as much is too near to the limit");
	for (int i = 0; i < 100; i++)
		pace__tick(&pace, 0);
	is_int(pace.slowdown, 1, "never above what was asked for");
	is_int(pace.slowest, 64, "the lowest rate is remembered");
	pace__init(&pace, 5, 1);
	ok(!pace__tick(&pace, 90), "1 Hz stays 1 Hz");
}

int main(void)
{
	check_budget();
	check_steady(4.9, false);
	check_steady(6, true);
	check_steady(40, true);
	check_pace();
	return tap__done();
}
