// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "bench/bench.h"
#include "bench/probe_costs.h"
#include "bench/sample_costs.h"
#include "core/base/util.h"

/* `braid bench` without a target: measures this machine, in less than 20 s. */

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

static void add_traps(struct result *result, const struct probe_costs *costs)
{
	static const char *const columns[] = { "probed instruction", "a hit|ns", NULL };

	result__table(result, "traps",
		      "One hit of a probe with an empty program: the kernel's floor", columns);
	for (int kind = 0; kind < TRAPS_N; kind++) {
		result__row(result);
		result__text(result, "%s", trap__text(kind));
		result__figure(result, &costs->trap[kind], 0);
	}
}

static void add_pair(struct result *result, const char *text, const struct figure *pair,
		     const struct figure *ratio)
{
	result__row(result);
	result__text(result, "%s", text);
	result__figure(result, pair, 0);
	if (ratio)
		result__figure(result, ratio, 3);
}

static void add_pairs(struct result *result, const struct probe_costs *costs)
{
	static const char *const columns[] = { "entry and return of a call", "a call|ns",
					       "over the floor", NULL };

	result__table(result, "pairs", "A call, and what braid adds to the kernel's floor",
		      columns);
	add_pair(result, "uprobe and uretprobe, empty programs", &costs->uprobe_pair, NULL);
	add_pair(result, "USDT pair, empty programs: the floor of what follows", &costs->usdt_pair,
		 NULL);
	add_pair(result, "shadow stack: push and pop", &costs->shadow, &costs->shadow_ratio);
	add_pair(result, "the same, calls counted and timed", &costs->calls, &costs->calls_ratio);
}

/* --- samples --- */

static void add_cost(struct result *result, const char *what, const char *unwinder,
		     const struct sample_cost_opts *opts, const struct sample_cost *cost)
{
	result__row(result);
	result__text(result, "%s", what);
	result__text(result, "%s", unwinder);
	result__number(result, opts->depth, 0);
	result__number(result, cost->kernel_ns, 0);
	result__number(result, cost->kernel_ns / opts->depth, 0);
	result__number(result, cost->user_ns, 0);
	result__number(result, cost->samples, 0);
}

static int add_native(const struct bench_opts *opts, struct result *result, struct err *err)
{
	static const unsigned depths[] = { 10, 100, 500 };
	static const struct {
		const char *name;
		enum unwind_mode unwind;
	} unwinders[] = { { "tables", UNWIND_MODE_AUTO },
			  { "frame pointers", UNWIND_MODE_FP },
			  { "stack copies", UNWIND_MODE_COPY } };
	int ret = 0;

	for (size_t u = 0; u < ARRAY_SIZE(unwinders); u++)
		for (size_t d = 0; !ret && d < ARRAY_SIZE(depths); d++) {
			struct sample_cost_opts sampling = { .runtimes = opts->runtimes,
							     .unwind = unwinders[u].unwind,
							     .frequency_hz = SAMPLING_HZ,
							     .duration_s = SAMPLING_S,
							     .depth = depths[d] };
			struct sample_cost cost;

			if (unwinders[u].unwind == UNWIND_MODE_COPY && depths[d] != 100)
				continue; /* the copy is most of the cost */
			ret = sample_cost__of_native(&sampling, &cost, err);
			if (!ret)
				add_cost(result, "native", unwinders[u].name, &sampling, &cost);
		}
	return ret;
}

/* Measures with the first interpreter in PATH. */
static int add_runtime(const struct bench_opts *opts, struct result *result, int i, struct err *err)
{
	static const unsigned depths[] = { 10, 500 };
	struct sample_cost_opts sampling = { .runtimes = opts->runtimes,
					     .enabled = 1U << i,
					     .unwind = UNWIND_MODE_AUTO,
					     .frequency_hz = SAMPLING_HZ,
					     .duration_s = SAMPLING_S };
	struct interpreter found;
	struct sample_cost cost;
	char name[64];
	int ret = 0;

	if (workload__find(opts->runtimes[i]->name, &found, err)) {
		result__note(result, "%s: %s.", opts->runtimes[i]->name, err->text);
		return 0;
	}
	snprintf(name, sizeof(name), "%s %s", found.runtime, found.version);
	for (size_t d = 0; !ret && d < ARRAY_SIZE(depths); d++) {
		sampling.depth = depths[d];
		ret = sample_cost__of_interpreter(&sampling, &found, &cost, err);
		if (!ret)
			add_cost(result, name, "tables, and a walk", &sampling, &cost);
	}
	return ret;
}

static int add_samples(const struct bench_opts *opts, struct result *result, struct err *err)
{
	static const char *const columns[] = { "calls of",     "unwinder",
					       "depth",	       "in the kernel|ns",
					       "per frame|ns", "braid's own CPU|ns",
					       "samples",      NULL };
	int ret;

	opts->on_step("samples at %d Hz ...", SAMPLING_HZ);
	result__table(result, "samples", "One sample, by depth of the stack", columns);
	ret = add_native(opts, result, err);
	for (int i = 0; !ret && opts->runtimes[i]; i++)
		if (opts->enabled & 1U << i && opts->runtimes[i]->walker)
			ret = add_runtime(opts, result, i, err);
	return ret;
}

int bench__machine(const struct bench_opts *opts, struct result *result, struct err *err)
{
	struct probe_costs costs;
	cpu_set_t set;
	int ret;

	add_machine(result, sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set));
	opts->on_step("probes ...");
	ret = probe_costs__measure(ROUNDS, &costs, err);
	if (ret)
		return ret;
	add_traps(result, &costs);
	add_pairs(result, &costs);
	return add_samples(opts, result, err);
}
