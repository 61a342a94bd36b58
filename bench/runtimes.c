// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/bench.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/interrupt.h"
#include "bench/runtime_ways.h"
#include "core/util.h"

#define BUDGET_S   40 /* of one interpreter, if the user sets no limit */
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

/* What the program pays. */
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
		result__note(result, "only %zu round%s: the intervals (?) are not sure", n,
			     n == 1 ? "" : "s");
}

/* Of the time that an empty program at the same probes takes, and of what it adds. */
static void add_floor(const struct ways *ways, const struct series *series, struct result *result)
{
	const double *empty = ways->series[WAY_EMPTY].ns[WORKLOAD_CALLS];
	const double *base =
		ways->series[ways->separate ? WAY_READY : WAY_NOTHING].ns[WORKLOAD_CALLS];
	const double *values = series->ns[WORKLOAD_CALLS];
	double added[ROUNDS_MAX], floor[ROUNDS_MAX];
	struct figure all, more;

	if (ways->series[WAY_EMPTY].off || !series->by_probes) {
		result__empty(result);
		result__empty(result);
		return;
	}
	for (size_t i = 0; i < ways->n_rounds; i++) {
		added[i] = values[i] - base[i];
		floor[i] = empty[i] - base[i];
	}
	all = figure__ratio(values, empty, ways->n_rounds);
	more = figure__ratio(added, floor, ways->n_rounds);
	result__figure(result, &all, 2);
	result__figure(result, &more, 2);
}

/* What braid does for that. */
static void add_work(const struct ways *ways, struct result *result)
{
	static const char *const columns[] = { "way",
					       "time, of the floor|times",
					       "added time, of the floor|times",
					       "braid's CPU|%",
					       "memory|MiB",
					       "samples|1/s",
					       "lost",
					       "calls seen|%",
					       NULL };
	char name[64];

	snprintf(name, sizeof(name), "%s-%s-braid", ways->interpreter->runtime,
		 ways->interpreter->version);
	result__table(result, name,
		      "What braid itself does meanwhile (floor: the empty program at the same "
		      "probes)",
		      columns);
	for (int i = 0; i < WAYS_N; i++) {
		const struct series *series = &ways->series[i];

		if (series->off || !series->run_s)
			continue;
		result__row(result);
		result__text(result, "%s", way__text(i));
		add_floor(ways, series, result);
		result__number(result, 100 * series->run_cpu_s / series->run_s, 1);
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

/* As many rounds as there is time for. -EINTR only if there is none. */
static int measure(struct ways *ways, double budget_s, const struct interrupt *interrupt,
		   struct err *err)
{
	uint64_t start_ns = now_ns();
	double used_s = 0, round_s = 0;
	int code = 0;

	while (!code && ways->n_rounds < ROUNDS_MAX &&
	       (ways->n_rounds < ROUNDS_MIN || used_s + round_s < budget_s)) {
		if (ways->opts->duration_s > 0 && ways->n_rounds && used_s + round_s > budget_s)
			break;
		code = ways__round(ways, interrupt, err);
		round_s = (now_ns() - start_ns) / 1e9 - used_s;
		used_s += round_s;
	}
	return code == -EINTR && ways->n_rounds ? 0 : code;
}

/* One interpreter. `ret_probed`: can it be recorded by probes? With `only_probed`, one that cannot
 * is not measured. */
static int bench_one(const struct bench_opts *opts, unsigned runtime,
		     const struct interpreter *interpreter, bool only_probed,
		     const struct interrupt *interrupt, struct result *result, bool *ret_probed,
		     struct err *err)
{
	struct ways *ways;
	int code;

	if (opts->on_step)
		opts->on_step("%s %s", interpreter->runtime, interpreter->version);
	code = ways__open(opts, runtime, interpreter, only_probed, &ways, err);
	if (code)
		return code;
	if (ways->probed || !only_probed) {
		code = measure(ways, opts->duration_s > 0 ? opts->duration_s : BUDGET_S, interrupt,
			       err);
		if (!code) {
			add_costs(ways, result);
			add_work(ways, result);
		}
	}
	*ret_probed = !code && ways->probed && !ways->series[WAY_PROBES_99].off;
	ways__close(ways);
	return code;
}

/* The newest that is there and, if that cannot be recorded by probes, the newest that
 * can. */
static int bench_runtime(const struct bench_opts *opts, unsigned runtime,
			 const struct interrupt *interrupt, struct result *result, struct err *err)
{
	struct interpreter list[INTERPRETERS_MAX];
	size_t n = workload__find(opts->runtimes[runtime]->name, INTERPRETERS_MAX, list, err);
	bool probed = false;
	int code = -ENOENT;

	for (size_t i = 0; i < n && !probed; i++) {
		struct err one = {};
		int rc =
			bench_one(opts, runtime, &list[i], !code, interrupt, result, &probed, &one);

		if (!rc)
			code = 0;
		else if (code)
			*err = one;
		if (rc == -EPERM || rc == -EINTR)
			return rc;
	}
	return code;
}

int bench__runtimes(const struct bench_opts *opts, struct result *result, struct err *err)
{
	struct interrupt interrupt;
	struct err reason;
	unsigned measured = 0;
	int code = interrupt__open(&interrupt, err), rc;

	if (code)
		return code;
	for (unsigned i = 0; !code && opts->runtimes[i]; i++) {
		if (!(opts->enabled & 1U << i))
			continue;
		reason.text[0] = 0;
		rc = bench_runtime(opts, i, &interrupt, result, &reason);
		measured += !rc;
		if (rc) {
			err__set(err, rc, "%s: %s", opts->runtimes[i]->name, reason.text);
			result__note(result, "%s", err->text);
		}
		if (rc == -EPERM || rc == -EINTR)
			code = rc;
	}
	interrupt__close(&interrupt);
	if (measured)
		return 0;
	return code ? code : -ENOENT;
}
