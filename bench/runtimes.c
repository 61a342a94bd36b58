// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/bench.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/interrupt.h"
#include "bench/ways.h"
#include "core/base/util.h"

#define BUDGET_S   40 /* for one runtime, if the user sets no limit */
#define ROUNDS_MIN 3

static void add_slower(struct result *result, const double *values, const double *base, size_t n)
{
	struct figure ratio = figure__ratio(values, base, n);

	result__ratio(result, &ratio, true);
}

static void add_figure(struct result *result, const double *values, size_t n, double unit)
{
	double scaled[ROUNDS_MAX];
	struct figure figure;

	for (size_t i = 0; i < n; i++)
		scaled[i] = values[i] / unit;
	figure = figure__of(scaled, n);
	result__figure(result, &figure, figure.median >= 1000 ? 0 : 1);
}

/* Adds the table of the program's costs. */
static void add_costs(const struct ways *ways, struct result *result)
{
	static const char *const columns[] = { "under",
					       "nothing but calls|ns each",
					       "slower|%",
					       "ordinary work|us a unit",
					       "ordinary work, slower|%",
					       NULL };
	const struct series *base = &ways->series[WAY_NOTHING];
	const struct interpreter *interpreter = ways->interpreter;
	char name[64], title[400];
	size_t n = ways->n_rounds;

	snprintf(name, sizeof(name), "%s-%s", interpreter->runtime, interpreter->version);
	snprintf(title, sizeof(title), "%s %s (%s): CPU time of the bundled workloads",
		 interpreter->runtime, interpreter->version, interpreter->program);
	result__table(result, name, title, columns);
	for (int i = 0; i < WAYS_N; i++) {
		const struct series *series = &ways->series[i];

		if (series->off)
			continue;
		result__row(result);
		result__text(result, "%s", way__text(i));
		add_figure(result, series->ns[WORKLOAD_CALLS], n, 1);
		if (i == WAY_NOTHING)
			result__empty(result);
		else
			add_slower(result, series->ns[WORKLOAD_CALLS], base->ns[WORKLOAD_CALLS], n);
		add_figure(result, series->ns[WORKLOAD_ORDINARY], n, 1e3);
		if (i == WAY_NOTHING)
			result__empty(result);
		else
			add_slower(result, series->ns[WORKLOAD_ORDINARY],
				   base->ns[WORKLOAD_ORDINARY], n);
	}
	for (size_t i = 0; i < ways->n_notes; i++)
		result__note(result, "%s", ways->notes[i]);
	if (n < 6)
		result__note(result, "only %zu round%s: the intervals (?) are uncertain", n,
			     n == 1 ? "" : "s");
}

/* Adds the table of braid's own work. */
static void add_work(const struct ways *ways, struct result *result)
{
	static const char *const columns[] = { "under",	      "braid's CPU|%", "memory|MiB",
					       "samples|1/s", "lost",	       "calls seen|%",
					       NULL };
	char name[64];

	snprintf(name, sizeof(name), "%s-%s-braid", ways->interpreter->runtime,
		 ways->interpreter->version);
	result__table(result, name, "What braid itself does meanwhile", columns);
	for (int i = 0; i < WAYS_N; i++) {
		const struct series *series = &ways->series[i];

		if (series->off || !(series->run_s > 0))
			continue;
		result__row(result);
		result__text(result, "%s", way__text(i));
		result__number(result, 100 * series->own_cpu_s / series->run_s, 1);
		result__number(result, series->memory_bytes / 1048576.0, 1);
		if (i == WAY_CALLS)
			result__empty(result);
		else
			result__number(result, series->samples / series->run_s, 0);
		result__number(result, series->lost, 0);
		if (i == WAY_CALLS)
			result__number(result,
				       100.0 * series->counted / max_of(series->called, 1UL), 3);
	}
}

/* Runs rounds until the time is used up. Returns -EINTR only if there is no complete round. */
static int measure(struct ways *ways, double budget_s, const struct interrupt *interrupt,
		   struct err *err)
{
	uint64_t start_ns = now_ns();
	double used_s = 0, round_s = 0;
	int ret = 0;

	while (!ret && ways->n_rounds < ROUNDS_MAX &&
	       (ways->n_rounds < ROUNDS_MIN || used_s + round_s < budget_s)) {
		if (ways->opts->duration_s > 0 && ways->n_rounds && used_s + round_s > budget_s)
			break;
		ret = ways__round(ways, interrupt, err);
		round_s = (now_ns() - start_ns) / 1e9 - used_s;
		used_s += round_s;
	}
	return ret == -EINTR && ways->n_rounds ? 0 : ret;
}

/* Measures the first interpreter in PATH. */
static int bench_runtime(const struct bench_opts *opts, unsigned runtime,
			 const struct interrupt *interrupt, struct result *result, struct err *err)
{
	struct interpreter interpreter;
	struct ways *ways;
	int ret = workload__find(opts->runtimes[runtime]->name, &interpreter, err);

	if (ret)
		return ret;
	opts->on_step("%s %s", interpreter.runtime, interpreter.version);
	ret = ways__open(opts, runtime, &interpreter, &ways, err);
	if (ret)
		return ret;
	ret = measure(ways, opts->duration_s > 0 ? opts->duration_s : BUDGET_S, interrupt, err);
	if (!ret) {
		add_costs(ways, result);
		add_work(ways, result);
	}
	ways__close(ways);
	return ret;
}

int bench__runtimes(const struct bench_opts *opts, struct result *result, struct err *err)
{
	struct interrupt interrupt;
	unsigned measured = 0;
	int ret = interrupt__open(&interrupt, err), last = 0;

	if (ret)
		return ret;
	for (unsigned i = 0; opts->runtimes[i] && last != -EPERM && last != -EINTR; i++) {
		struct err reason = {};

		if (!(opts->enabled & 1U << i))
			continue;
		last = bench_runtime(opts, i, &interrupt, result, &reason);
		measured += !last;
		if (!last)
			continue;
		ret = err__set(err, last, "%s: %s", opts->runtimes[i]->name, reason.text);
		result__note(result, "%s", err->text);
	}
	interrupt__close(&interrupt);
	return measured ? 0 : ret;
}
