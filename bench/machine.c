// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "bench/bench.h"
#include "bench/calibration.h"
#include "bench/ring.h"
#include "bench/samples.h"
#include "core/util.h"

/* `braid bench` without a target: this machine. In under 20 s. */

#define ROUNDS	    11
#define SAMPLING_HZ 4999
#define SAMPLING_S  0.4

static void add_machine(struct result *result, unsigned cpus)
{
	static const char *const columns[] = { "kernel", "machine", "cpus", "time", NULL };
	struct utsname uts = {};
	time_t now = time(NULL);
	char text[32];

	uname(&uts);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	result__table(result, "machine", "This machine", columns);
	result__row(result);
	result__text(result, "%s", uts.release);
	result__text(result, "%s", uts.machine);
	result__number(result, cpus, 0);
	result__text(result, "%s", text);
}

/* --- probes --- */

static void add_traps(struct result *result, const struct calibration *one,
		      const struct calibration *all)
{
	static const char *const columns[] = { "probed instruction", "one CPU|ns", "all CPUs|ns",
					       NULL };

	result__table(result, "traps",
		      "One hit of a probe with an empty program: the kernel's floor", columns);
	for (int kind = 0; kind < TRAPS_N; kind++) {
		result__row(result);
		result__text(result, "%s", trap__text(kind));
		result__figure(result, &one->trap[kind], 0);
		if (all)
			result__figure(result, &all->trap[kind], 0);
	}
	result__row(result);
	result__text(result, "counting hits, over an empty program");
	result__figure(result, &one->count, 0);
	if (all)
		result__figure(result, &all->count, 0);
}

static void add_pair(struct result *result, const char *text, const struct figure *one,
		     const struct figure *all, const struct figure *ratio)
{
	result__row(result);
	result__text(result, "%s", text);
	result__figure(result, one, 0);
	if (all)
		result__figure(result, all, 0);
	else
		result__empty(result);
	if (ratio)
		result__figure(result, ratio, 3);
}

static void add_pairs(struct result *result, const struct calibration *one,
		      const struct calibration *all)
{
	static const char *const columns[] = { "entry and return of a call", "one CPU|ns",
					       "all CPUs|ns", "over the floor", NULL };

	result__table(result, "pairs", "A call, and what braid adds to the kernel's floor",
		      columns);
	add_pair(result, "uprobe and uretprobe, empty programs", &one->pair[CALIBRATION_UPROBE],
		 all ? &all->pair[CALIBRATION_UPROBE] : NULL, NULL);
	add_pair(result, "USDT pair, empty programs: the floor of what follows",
		 &one->pair[CALIBRATION_USDT], all ? &all->pair[CALIBRATION_USDT] : NULL, NULL);
	add_pair(result, "shadow stack: push and pop", &one->shadow, all ? &all->shadow : NULL,
		 &one->shadow_ratio);
	add_pair(result, "the same, calls counted and timed", &one->calls, all ? &all->calls : NULL,
		 &one->calls_ratio);
}

static int add_probes(const struct bench_opts *opts, struct result *result, unsigned cpus,
		      struct calibration *ret_one, struct err *err)
{
	struct calibration all;
	int code;

	opts->on_step("probes, on one CPU ...");
	code = calibration__measure(1, ROUNDS, ret_one, err);
	if (!code && cpus > 1) {
		opts->on_step("probes, on %u CPUs at once ...", cpus);
		code = calibration__measure(cpus, ROUNDS, &all, err);
	}
	if (code)
		return code;
	add_traps(result, ret_one, cpus > 1 ? &all : NULL);
	add_pairs(result, ret_one, cpus > 1 ? &all : NULL);
	return 0;
}

/* --- samples --- */

static void add_cost(struct result *result, const char *what, const char *unwinder, unsigned depth,
		     const struct sample_cost *cost, double interrupt_ns)
{
	result__row(result);
	result__text(result, "%s", what);
	result__text(result, "%s", unwinder);
	result__number(result, depth, 0);
	result__number(result, cost->kernel_ns, 0);
	result__number(result, cost->kernel_ns / depth, 0);
	result__number(result, (cost->kernel_ns + interrupt_ns) / interrupt_ns, 1);
	result__number(result, cost->user_ns, 0);
	result__number(result, cost->samples, 0);
}

static int add_native(const struct bench_opts *opts, struct result *result, double interrupt_ns,
		      struct err *err)
{
	static const unsigned depths[] = { 10, 100, 500 };
	static const struct {
		const char *name;
		enum unwind_mode unwind;
	} unwinders[] = { { "tables", UNWIND_MODE_AUTO },
			  { "frame pointers", UNWIND_MODE_FP },
			  { "stack copies", UNWIND_MODE_COPY } };
	int code = 0;

	for (size_t u = 0; u < ARRAY_SIZE(unwinders); u++)
		for (size_t d = 0; !code && d < ARRAY_SIZE(depths); d++) {
			struct sample_cost_opts sampling = { .runtimes = opts->runtimes,
							     .source = RUNTIME_SOURCE_WALK,
							     .unwind = unwinders[u].unwind,
							     .frequency_hz = SAMPLING_HZ,
							     .duration_s = SAMPLING_S };
			struct sample_cost cost;

			if (u == UNWIND_MODE_COPY && depths[d] != 100)
				continue; /* the copy is most of it */
			code = sample_cost__of_depth(&sampling, depths[d], &cost, err);
			if (!code)
				add_cost(result, "native", unwinders[u].name, depths[d], &cost,
					 interrupt_ns);
		}
	return code;
}

/* By the interpreter that comes first in PATH. */
static int add_runtime(const struct bench_opts *opts, struct result *result, int i,
		       double interrupt_ns, struct err *err)
{
	static const unsigned depths[] = { 10, 500 };
	struct sample_cost_opts sampling = { .runtimes = opts->runtimes,
					     .enabled = 1U << i,
					     .source = RUNTIME_SOURCE_WALK,
					     .unwind = UNWIND_MODE_AUTO,
					     .frequency_hz = SAMPLING_HZ,
					     .duration_s = SAMPLING_S };
	struct interpreter found;
	struct sample_cost cost;
	char name[64];
	int code = 0;

	if (!workload__find(opts->runtimes[i]->name, 1, &found, err)) {
		result__note(result, "%s: %s.", opts->runtimes[i]->name, err->text);
		return 0;
	}
	snprintf(name, sizeof(name), "%s %s", found.runtime, found.version);
	for (size_t d = 0; !code && d < ARRAY_SIZE(depths); d++) {
		code = sample_cost__of_calls(&sampling, &found, depths[d], &cost, err);
		if (!code)
			add_cost(result, name, "tables, and a walk", depths[d], &cost,
				 interrupt_ns);
	}
	return code;
}

static int add_samples(const struct bench_opts *opts, struct result *result,
		       const struct figure *interrupt, struct err *err)
{
	static const char *const columns[] = {
		"calls of",	      "unwinder",     "depth",
		"in the kernel|ns",   "per frame|ns", "over the floor",
		"braid's own CPU|ns", "samples",      NULL
	};
	int code;

	opts->on_step("samples at %d Hz ...", SAMPLING_HZ);
	result__table(result, "samples", "One sample, by depth of the stack", columns);
	result__note(result,
		     "The floor: an interrupt by the timer with an empty program takes %.0f ns "
		     "(%.0f to %.0f).",
		     interrupt->median, interrupt->low, interrupt->high);
	code = add_native(opts, result, interrupt->median, err);
	for (int i = 0; !code && opts->runtimes[i]; i++)
		if (opts->enabled & 1U << i && opts->runtimes[i]->walker >= 0)
			code = add_runtime(opts, result, i, interrupt->median, err);
	return code;
}

/* --- the ring buffer --- */

static int add_ring(const struct bench_opts *opts, struct result *result, struct err *err)
{
	static const char *const columns[] = { "record|bytes", "written|ns", "read|ns", NULL };
	static const uint32_t sizes[] = { 64, 512, 4096, 8192 };
	struct figure written, read;
	int code = 0;

	opts->on_step("ring buffer ...");
	result__table(result, "ring", "One record through the ring buffer", columns);
	for (size_t i = 0; !code && i < ARRAY_SIZE(sizes); i++) {
		code = ring_cost__measure(sizes[i], ROUNDS, &written, &read, err);
		if (code)
			break;
		result__row(result);
		result__number(result, sizes[i], 0);
		result__figure(result, &written, 0);
		result__figure(result, &read, 0);
	}
	return code;
}

int bench__machine(const struct bench_opts *opts, struct result *result, struct err *err)
{
	struct calibration one;
	cpu_set_t set;
	unsigned cpus;
	int code;

	cpus = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
	add_machine(result, cpus);
	code = add_probes(opts, result, cpus, &one, err);
	if (!code)
		code = add_samples(opts, result, &one.interrupt, err);
	return code ? code : add_ring(opts, result, err);
}
