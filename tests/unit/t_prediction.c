// SPDX-License-Identifier: GPL-2.0-or-later
/* The arithmetic of predictions. */
#include <math.h>

#include "bench/prediction.h"
#include "tests/tap.h"

static bool is_near(double got, double want)
{
	return fabs(got - want) <= 1e-9 * fmax(fabs(want), 1);
}

static struct figure figure_of(double value)
{
	return (struct figure) { .median = value, .low = value, .high = value, .n = 7 };
}

static void check_work(void)
{
	const struct calibration calibration = {
		.pair = { figure_of(1000), figure_of(1500) },
		.count = figure_of(20),
		.shadow_ratio = figure_of(1.05),
		.calls_ratio = figure_of(1.2),
	};
	const struct probe_work known = { .counted = 0.1, .shadow = 0.3, .calls = 0.6 }, none = {};
	const struct {
		const struct probe_work *work;
		enum listener listener;
		double ns;
	} cases[] = {
		{ &known, LISTENER_COUNT, 100 }, { &known, LISTENER_SHADOW, 300 },
		{ &known, LISTENER_CALLS, 600 }, { &none, LISTENER_COUNT, 40 },
		{ &none, LISTENER_SHADOW, 50 },	 { &none, LISTENER_CALLS, 200 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		double ns = prediction__work_ns(&calibration, cases[i].work, cases[i].listener);

		ok(is_near(ns, cases[i].ns), "work of %s, listener %d: %g ns",
		   cases[i].work == &known ? "a known runtime" : "any", cases[i].listener, ns);
	}
}

static void check_noise(void)
{
	const struct calibration calibration = { .pair = { figure_of(1000), figure_of(1500) },
						 .shadow_ratio = figure_of(0.98),
						 .calls_ratio = figure_of(0.99) };
	const struct probe_work work = {};

	ok(prediction__work_ns(&calibration, &work, LISTENER_CALLS) == 0 &&
		   prediction__work_ns(&calibration, &work, LISTENER_SHADOW) == 0,
	   "a ratio below 1 is noise, not work that is negative");
}

static void check_rest(void)
{
	bool unsure = true;
	double own_s = prediction__rest_s(2, 0.5, &unsure);

	ok(is_near(own_s, 1.5) && !unsure, "rest: 2 s less 0.5 s: %g", own_s);
	own_s = prediction__rest_s(2, 0, &unsure);
	ok(is_near(own_s, 2) && !unsure, "rest: nothing is taken off: %g", own_s);
	own_s = prediction__rest_s(2, 1.99, &unsure);
	ok(is_near(own_s, 0.2) && unsure, "rest: next to nothing is a guess: %g", own_s);
	own_s = prediction__rest_s(2, 5, &unsure);
	ok(is_near(own_s, 0.2) && unsure, "rest: never negative: %g", own_s);
}

/* A process with 1 s of its own in user mode and 0.1 s in the kernel, and hits with 0.3 s and 1 s,
 * which are calibrated as `scale` of that. */
static struct hits_seen hits_of(double scale)
{
	return (struct hits_seen) { .cpu_s = 2.4,
				    .user_share = 1.3 / 2.4,
				    .plain_user_share = 1 / 1.1,
				    .hits_user_s = 0.3 * scale,
				    .hits_kernel_s = 1 * scale };
}

static void check_own_cpu(void)
{
	static const double scales[] = { 1, 0.5, 1.5 };
	struct hits_seen seen;
	bool unsure = true;
	double own_s;

	for (size_t i = 0; i < sizeof(scales) / sizeof(*scales); i++) {
		seen = hits_of(scales[i]);
		own_s = prediction__own_cpu_s(&seen, &unsure);
		ok(is_near(own_s, 1.1) && !unsure,
		   "own CPU time, by modes: whatever hits should cost (%g of what they do): %g",
		   scales[i], own_s);
	}
	seen.user_share = 0.2;
	own_s = prediction__own_cpu_s(&seen, &unsure);
	ok(unsure && own_s > 0, "own CPU time: nothing left in user mode is a guess: %g", own_s);
	seen.user_share = -1;
	own_s = prediction__own_cpu_s(&seen, &unsure);
	ok(is_near(own_s, 2.4 - 1.95), "own CPU time: the rest, without ticks: %g", own_s);
	seen = hits_of(0.1);
	own_s = prediction__own_cpu_s(&seen, &unsure);
	ok(is_near(own_s, 2.4 - 0.13), "own CPU time: the rest, of few hits: %g", own_s);
	seen = hits_of(1);
	seen.plain_user_share = 0.3;
	own_s = prediction__own_cpu_s(&seen, &unsure);
	ok(is_near(own_s, 1.1), "own CPU time: the rest, of one mostly in the kernel: %g", own_s);
}

static void check_shares(void)
{
	struct prediction calls = { .calls_per_s = 500000, .call_ns = 1600 };
	struct prediction record = { .samples_per_s = 999 * 1.5,
				     .sample_ns = 10000,
				     .own_ns = 20000 };
	struct prediction both = { .calls_per_s = 1000,
				   .call_ns = 1000,
				   .samples_per_s = 100,
				   .sample_ns = 10000,
				   .own_ns = 5000 };

	prediction__conclude(&calls, 0.5, 4);
	ok(is_near(calls.one_cpu, 0.8) && is_near(calls.machine, 0.2) &&
		   is_near(calls.slowdown, 1.6),
	   "calls: %g of one CPU, %g of four, slowdown %g of half a CPU", calls.one_cpu,
	   calls.machine, calls.slowdown);
	prediction__conclude(&record, 1.5, 2);
	ok(is_near(record.one_cpu, 999 * 1.5 * 30e-6) &&
		   is_near(record.machine, 999 * 1.5 * 15e-6) &&
		   is_near(record.slowdown, 999 * 10e-6),
	   "samples: braid's own time is no slowdown, which is by CPU time: %g, %g, %g",
	   record.one_cpu, record.machine, record.slowdown);
	prediction__conclude(&both, 1, 1);
	ok(is_near(both.one_cpu, 0.0025) && is_near(both.slowdown, 0.002), "both: %g, %g",
	   both.one_cpu, both.slowdown);
	prediction__conclude(&both, 0, 0);
	ok(both.slowdown == 0 && is_near(both.machine, 0.0025), "no CPU time, no CPU");
}

int main(void)
{
	check_work();
	check_noise();
	check_rest();
	check_own_cpu();
	check_shares();
	return tap__done();
}
