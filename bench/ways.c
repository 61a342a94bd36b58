// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/ways.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bench/observer.h"
#include "bench/peer.h"
#include "core/base/util.h"

#define TARGET_NS	60e6 /* one measurement */
#define WARM_UP_DIVISOR 8    /* 1/8 of a measurement precedes it */
#define WARM_UPS_MAX	60
#define WARM_UPS_STALE	12 /* this many runs in a row that were not faster: compilers are done */
#define FASTER		0.95

static const struct {
	const char *text;
	bool observed; /* observed by a session */
	enum runtime_source source;
	unsigned hz;
} infos[WAYS_N] = {
	[WAY_NOTHING] = { "nothing", false, RUNTIME_SOURCE_WALK, 0 },
	[WAY_RECORD_99] = { "record, 99 Hz", true, RUNTIME_SOURCE_WALK, 99 },
	[WAY_RECORD_999] = { "record, 999 Hz", true, RUNTIME_SOURCE_WALK, 999 },
	[WAY_PERF_999] = { "perf record -g, 999 Hz", false, RUNTIME_SOURCE_WALK, 999 },
	[WAY_CALLS] = { "calls", true, RUNTIME_SOURCE_CALLS, 0 },
};

const char *way__text(enum way way)
{
	return infos[way].text;
}

/* Adds a note, unless the same note exists. */
__attribute__((format(printf, 2, 3))) static void note(struct ways *ways, const char *fmt, ...)
{
	va_list args;

	if (ways->n_notes == NOTES_MAX)
		return;
	va_start(args, fmt);
	vsnprintf(ways->notes[ways->n_notes], sizeof(ways->notes[0]), fmt, args);
	va_end(args);
	for (size_t i = 0; i < ways->n_notes; i++)
		if (!strcmp(ways->notes[i], ways->notes[ways->n_notes]))
			return;
	ways->n_notes++;
}

static struct workload *workload_of(const struct ways *ways, enum way way)
{
	return way == WAY_CALLS ? ways->probed : ways->plain;
}

static int observe(const struct ways *ways, enum way way, struct observer **ret, struct err *err)
{
	struct observer_opts opts = {
		.runtimes = ways->opts->runtimes,
		.enabled = 1U << ways->runtime,
		.pid = workload__pid(workload_of(ways, way)),
		.source = infos[way].source,
		.frequency_hz = infos[way].hz,
		.callee = WORKLOAD_CALLEE,
	};

	return observer__start(&opts, ret, err);
}

/* --- beginning and end --- */

/* Runs @task with growing counts, until a run takes half of TARGET_NS. *@ret_n and *@ret_ns are
 * those of the last and longest run. Adds all calls to *@calls. */
static int grow(struct workload *workload, enum workload_task task, uint64_t *ret_n, double *ret_ns,
		uint64_t *calls, struct err *err)
{
	uint64_t n = 1, grown;
	int ret = 0;

	*ret_ns = 0;
	while (!ret && *ret_ns < TARGET_NS / 2 && n < INT32_MAX / 2) {
		n *= 2;
		ret = workload__run(workload, task, n, ret_ns, &grown, err);
		*calls += ret ? 0 : grown;
	}
	*ret_n = n;
	return ret;
}

static int warm_up(struct workload *workload, struct err *err)
{
	for (int task = 0; task < WORKLOAD_TASKS_N; task++) {
		double ns, best = INFINITY;
		uint64_t n, calls = 0;
		int stale = 0, ret = grow(workload, task, &n, &ns, &calls, err);

		for (int i = 0; !ret && i < WARM_UPS_MAX && stale < WARM_UPS_STALE; i++) {
			stale = ns < FASTER * best ? 0 : stale + 1;
			best = min_of(best, ns);
			ret = workload__run(workload, task, n, &ns, &calls, err);
		}
		if (ret)
			return ret;
	}
	return 0;
}

/* Turns the way off if the observer found no frames of this runtime, and notes the reason. */
static void evaluate(struct ways *ways, enum way way, const struct observation *observation)
{
	const char *name = ways->opts->runtimes[ways->runtime]->name;
	const struct observed_source *source = observation__source(observation, name);

	ways->series[way].off = !source || !strcmp(source->source, "none");
	if (ways->series[way].off)
		note(ways, "no %s: %s", infos[way].text,
		     source ? source->reason : "braid does not recognize the runtime");
	else if (way == WAY_CALLS)
		note(ways, "calls by %s%s%s", source->source, source->reason[0] ? ": " : "",
		     source->reason);
}

/* Attaches for a moment, to check whether there are probes. */
static int try_calls(struct ways *ways, struct err *err)
{
	struct observation observation;
	struct observer *observer;
	int ret = observe(ways, WAY_CALLS, &observer, err);

	if (!ret)
		ret = observer__stop(observer, &observation, err);
	if (!ret)
		evaluate(ways, WAY_CALLS, &observation);
	return ret;
}

static void try_perf(struct ways *ways)
{
	struct err err = {};
	struct peer *peer = NULL;

	if (peer__start(workload__pid(ways->plain), infos[WAY_PERF_999].hz, &peer, &err)) {
		ways->series[WAY_PERF_999].off = true;
		note(ways, "no comparison: %s", err.text);
	}
	peer__stop(peer);
}

static int open_inside(struct ways *ways, struct err *err)
{
	const struct runtime *runtime = ways->opts->runtimes[ways->runtime];
	int ret = workload__start(ways->interpreter, NULL, &ways->plain, err);

	if (ret)
		return ret;
	ways->probed = ways->plain;
	if (runtime__has(runtime, probes, prepare_command))
		ret = workload__start(ways->interpreter, runtime, &ways->probed, err);
	if (!ret)
		ret = try_calls(ways, err);
	if (!ret) {
		try_perf(ways);
		ret = warm_up(ways->plain, err);
	}
	if (!ret && ways->probed != ways->plain && !ways->series[WAY_CALLS].off)
		ret = warm_up(ways->probed, err);
	return ret;
}

int ways__open(const struct bench_opts *opts, unsigned runtime,
	       const struct interpreter *interpreter, struct ways **ret_ways, struct err *err)
{
	struct ways *ways = calloc(1, sizeof(*ways));
	int ret;

	if (!ways)
		return err__set(err, -ENOMEM, "out of memory");
	ways->opts = opts;
	ways->runtime = runtime;
	ways->interpreter = interpreter;
	ret = open_inside(ways, err);
	if (ret)
		ways__close(ways);
	else
		*ret_ways = ways;
	return ret;
}

void ways__close(struct ways *ways)
{
	if (!ways)
		return;
	if (ways->probed != ways->plain)
		workload__stop(ways->probed);
	workload__stop(ways->plain);
	free(ways);
}

/* --- one round --- */

/* Measures a task. The first call also finds the count that takes long enough. */
static int measure_task(struct ways *ways, enum way way, enum workload_task task, struct err *err)
{
	struct workload *workload = workload_of(ways, way);
	struct series *series = &ways->series[way];
	uint64_t *n = &series->n[task], calls = 0, part = max_of(*n / WARM_UP_DIVISOR, 1UL);
	double ns = 0;
	int ret;

	do {
		ret = workload__run(workload, task, part, &ns, &calls, err);
		series->called += task == WORKLOAD_CALLS ? calls : 0;
		if (*n)
			break;
		if (ns >= TARGET_NS / WARM_UP_DIVISOR || part > UINT32_MAX / 16)
			*n = max_of(part * TARGET_NS / max_of(ns, 1), 1);
		part *= 2;
	} while (!ret && !*n);
	*n = min_of(*n, (uint64_t)INT32_MAX); /* Java's int */
	if (!ret)
		ret = workload__run(workload, task, *n, &ns, &calls, err);
	series->called += task == WORKLOAD_CALLS ? calls : 0;
	series->ns[task][ways->n_rounds] = ns / *n;
	return ret;
}

/* Warms up a workload that was waiting: its caches are cold, and its compilers may have work left.
 */
static int wake(struct ways *ways, enum way way, struct err *err)
{
	struct workload *workload = workload_of(ways, way);
	uint64_t n, calls;
	double ns;
	int ret = 0;

	for (int task = 0; !ret && workload != ways->last && task < WORKLOAD_TASKS_N; task++) {
		calls = 0;
		ret = grow(workload, task, &n, &ns, &calls, err);
		ways->series[way].called += task == WORKLOAD_CALLS ? calls : 0;
	}
	ways->last = workload;
	return ret;
}

static int measure_tasks(struct ways *ways, enum way way, struct err *err)
{
	int ret = wake(ways, way, err);

	for (int task = 0; !ret && task < WORKLOAD_TASKS_N; task++)
		ret = measure_task(ways, way, task, err);
	return ret;
}

static int measure_observed(struct ways *ways, enum way way, struct err *err)
{
	struct series *series = &ways->series[way];
	struct observation observation;
	struct observer *observer;
	struct err stop_err = {};
	int ret = observe(ways, way, &observer, err), stopped;

	if (ret)
		return ret;
	ret = measure_tasks(ways, way, err);
	stopped = observer__stop(observer, &observation, &stop_err);
	if (!ret && stopped)
		*err = stop_err;
	if (ret || stopped)
		return ret ? ret : stopped;
	if (!ways->n_rounds)
		evaluate(ways, way, &observation);
	series->own_cpu_s += observation.run_cpu_s;
	series->run_s += observation.duration_s;
	series->samples += observation.samples;
	series->lost += observation.lost;
	series->counted += observation.calls;
	series->memory_bytes = max_of(series->memory_bytes, observation.memory_bytes);
	return 0;
}

static int measure_perf(struct ways *ways, struct err *err)
{
	struct peer *peer;
	int ret = peer__start(workload__pid(ways->plain), infos[WAY_PERF_999].hz, &peer, err);

	if (ret)
		return ret;
	ret = measure_tasks(ways, WAY_PERF_999, err);
	peer__stop(peer);
	return ret;
}

int ways__round(struct ways *ways, const struct interrupt *interrupt, struct err *err)
{
	ways->opts->on_step("%s %s: round %zu", ways->interpreter->runtime,
			    ways->interpreter->version, ways->n_rounds + 1);
	/* Alternates the order, so that the first way has no advantage. */
	for (int i = 0; i < WAYS_N; i++) {
		enum way way = ways->n_rounds % 2 ? WAYS_N - 1 - i : i;
		int ret = 0;

		if (interrupt__came(interrupt))
			ret = err__set(err, -EINTR, "interrupted");
		else if (ways->series[way].off)
			continue;
		else if (infos[way].observed)
			ret = measure_observed(ways, way, err);
		else
			ret = way == WAY_PERF_999 ? measure_perf(ways, err)
						  : measure_tasks(ways, way, err);
		if (ret)
			return ret;
	}
	ways->n_rounds++;
	return 0;
}
