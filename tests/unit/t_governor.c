// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/governor.h"

#include "bpf/shadow.h"
#include "core/calls.h"
#include "core/util.h"
#include "tests/tap.h"

#define SEC NSEC_PER_SEC
#define MS  1000000ULL

static void check_budget(void)
{
	struct budget budget;
	uint64_t now = 7 * SEC;

	budget__init(&budget, 5, 2, now); /* 100 ms a second */
	ok(budget__is_full(&budget) && !budget__is_overdrawn(&budget), "full at first");
	budget__spend(&budget, 0, now += 10 * SEC);
	budget__spend(&budget, 90 * MS, now);
	ok(!budget__is_overdrawn(&budget), "a second's worth may be spent at once");
	budget__spend(&budget, 20 * MS, now += MS);
	ok(budget__is_overdrawn(&budget), "and no more, however long it was quiet before");
	budget__spend(&budget, 0, now += SEC);
	ok(!budget__is_overdrawn(&budget) && !budget__is_full(&budget),
	   "a second later it is nearly full");
	budget__spend(&budget, 0, now += 90 * MS);
	ok(!budget__is_full(&budget), "not quite");
	budget__spend(&budget, 0, now += 20 * MS);
	ok(budget__is_full(&budget), "and then it is");
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
	   "and what it cost is told right: %.2f", budget__percent(&budget));
}

/* Whatever happens in windows, in the long run no more is spent than may be. */
static void check_windows(void)
{
	struct budget budget;
	double spent_ns = 0;
	uint64_t now = SEC, begin = now;
	bool open = true;
	int windows = 0;

	budget__init(&budget, 2, 2, now);
	while (now < begin + 1000 * SEC) {
		double ns = open ? (70 + windows % 9 * 5) * MS : 0;

		spent_ns += ns;
		budget__spend(&budget, ns, now += 100 * MS);
		if (open && budget__is_overdrawn(&budget)) {
			open = false;
			windows++;
		} else if (!open && budget__is_full(&budget)) {
			open = true;
		}
	}
	ok(windows > 100, "many windows: %d", windows);
	ok(spent_ns / (now - begin) < 0.02 * 2 * 1.01, "the limit is kept in the long run: %.4f",
	   spent_ns / (now - begin));
	ok(spent_ns / (now - begin) > 0.02 * 2 * 0.5, "and made use of");
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

static void check_cut(void)
{
	struct calls_cut cut = {};
	struct shadow_entry entry = { .node = 40, .entered_ns = 100 };

	is_int(calls_cut__add(&cut, &entry, 250), 0, "a call is cut");
	entry = (struct shadow_entry) { .node = 3, .entered_ns = 300 };
	is_int(calls_cut__add(&cut, &entry, 250), 0, "one that began after that");
	ok(cut.n <= 3 || cut.ns[3] == 0, "is no time");
	entry = (struct shadow_entry) { .entered_ns = 1 };
	calls_cut__add(&cut, &entry, 250);
	entry = (struct shadow_entry) { .node = 40, .entered_ns = 1000 };
	calls_cut__add(&cut, &entry, 1001);
	is_int(cut.n, 41, "as many nodes as needed");
	is_int(cut.ns[40], 151, "times of a node are added");
	is_int(cut.ns[0] + cut.ns[39], 0, "others have none");
	calls_cut__done(&cut);
	calls_cut__done(&cut);
	is_int(cut.n, 0, "done");
}

int main(void)
{
	check_budget();
	check_steady(4.9, false);
	check_steady(6, true);
	check_steady(40, true);
	check_windows();
	check_pace();
	check_cut();
	return tap__done();
}
