// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/bench.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "bench/interrupt.h"
#include "bench/observer.h"
#include "core/base/util.h"

/* `braid bench -- COMMAND`: runs the command repeatedly, alternately alone and observed. */

#define WALL_MIN_S   0.05 /* a shorter time is lost in the noise of a process start */
#define BUDGET_S     40	  /* if the user sets no limit */
#define LONG_S	     5	  /* a run of this length or longer is too expensive to discard */
#define ROUNDS_MIN   3
#define ROUNDS_MAX   30
#define REASON_BYTES 500

enum way { NOTHING, RECORD_99, RECORD_999, CALLS, WAYS_N };

static const struct {
	const char *text;
	enum runtime_source source;
	unsigned hz;
} infos[WAYS_N] = {
	[NOTHING] = { "nothing", RUNTIME_SOURCE_AUTO, 0 },
	[RECORD_99] = { "record, 99 Hz", RUNTIME_SOURCE_AUTO, 99 },
	[RECORD_999] = { "record, 999 Hz", RUNTIME_SOURCE_AUTO, 999 },
	[CALLS] = { "calls", RUNTIME_SOURCE_CALLS, 0 },
};

struct series {
	bool off;
	size_t n;
	double wall_s[ROUNDS_MAX], cpu_s[ROUNDS_MAX];
	double own_cpu_s; /* this and the next fields are sums; memory: the maximum */
	uint64_t samples, complete, lost, calls, memory_bytes;
};

struct runs {
	const struct bench_opts *opts;
	const struct interrupt *interrupt;
	struct series series[WAYS_N];
	size_t n_rounds;
	char reason[REASON_BYTES]; /* reason why calls cannot be counted; "": they can */
};

__attribute__((format(printf, 2, 3))) static void step(const struct runs *runs, const char *fmt,
						       ...)
{
	char text[200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	runs->opts->on_step("%s", text);
}

/* --- one run --- */

/* Returns 0 if the command succeeded, or -ECHILD with the failure in @err. */
static int check_status(const struct runs *runs, enum way way, int status, struct err *err)
{
	const char *name = runs->opts->command[0];
	char during[64] = "";

	if (way != NOTHING)
		snprintf(during, sizeof(during), ", under: %s", infos[way].text);
	if (WIFSIGNALED(status))
		return err__set(err, -ECHILD, "%s was killed by signal %d%s%s", name,
				WTERMSIG(status), during,
				way ? "" : ". Only successful runs can be measured");
	if (WEXITSTATUS(status))
		return err__set(err, -ECHILD, "%s failed with status %d%s%s", name,
				WEXITSTATUS(status), during,
				way ? "" : ". Only successful runs can be measured");
	return 0;
}

static int run_once(const struct runs *runs, enum way way, struct observation *ret_observation,
		    struct err *err)
{
	struct observer_opts opts = {
		.runtimes = runs->opts->runtimes,
		.enabled = runs->opts->enabled,
		.command = runs->opts->command,
		.nothing = way == NOTHING,
		.source = infos[way].source,
		.frequency_hz = infos[way].hz,
	};
	struct observer *observer;
	int ret;

	if (interrupt__came(runs->interrupt))
		return err__set(err, -EINTR, "interrupted");
	ret = observer__start(&opts, &observer, err);
	if (!ret)
		ret = observer__wait(observer, runs->interrupt->fd, ret_observation, err);
	return ret ? ret : check_status(runs, way, ret_observation->command_status, err);
}

static void keep(struct series *series, const struct observation *observation)
{
	series->wall_s[series->n] = observation->duration_s;
	series->cpu_s[series->n] = observation->command_cpu_s;
	series->n++;
	series->own_cpu_s += observation->own_cpu_s;
	series->samples += observation->samples;
	series->complete += observation->complete;
	series->lost += observation->lost;
	series->calls += observation->calls;
	series->memory_bytes = max_of(series->memory_bytes, observation->memory_bytes);
}

/* --- available ways --- */

/* Returns true if a runtime that was found may have probes. */
static bool may_have_probes(const struct runs *runs, const struct observation *observation)
{
	const struct runtime *const *runtimes = runs->opts->runtimes;

	for (size_t i = 0; i < observation->n_sources; i++)
		for (int k = 0; runtimes[k]; k++)
			if (runtimes[k]->probes &&
			    !strcmp(runtimes[k]->name, observation->sources[i].runtime))
				return true;
	return false;
}

/* Returns true if there were probes. Otherwise sets runs->reason. */
static bool had_probes(struct runs *runs, const struct observation *observation)
{
	for (size_t i = 0; i < observation->n_sources; i++) {
		const struct observed_source *source = &observation->sources[i];

		if (strcmp(source->source, "none") != 0) {
			runs->reason[0] = 0;
			return true;
		}
		snprintf(runs->reason, sizeof(runs->reason), "no calls: %.15s %.31s: %s",
			 source->runtime, source->version, source->reason);
	}
	return false;
}

/* Turns off ways that are unavailable. Called in the first round. */
static void evaluate_ways(struct runs *runs, enum way way, const struct observation *observation)
{
	if (way == RECORD_99)
		runs->series[CALLS].off = !may_have_probes(runs, observation);
	else if (way == CALLS)
		runs->series[CALLS].off = !had_probes(runs, observation);
}

/* --- rounds --- */

static int run_round(struct runs *runs, struct err *err)
{
	step(runs, "round %zu", runs->n_rounds + 1);
	/* Alternates the order, so that the first way has no advantage. */
	for (int i = 0; i < WAYS_N; i++) {
		enum way way = runs->n_rounds % 2 ? WAYS_N - 1 - i : i;
		struct series *series = &runs->series[way];
		struct observation observation;
		int ret;

		if (series->off || series->n > runs->n_rounds)
			continue;
		ret = run_once(runs, way, &observation, err);
		if (ret)
			return ret;
		if (!runs->n_rounds)
			evaluate_ways(runs, way, &observation);
		if (!series->off)
			keep(series, &observation);
	}
	runs->n_rounds++;
	return 0;
}

/* Runs the command alone, to check that it succeeds, and to measure its time. */
static int first_run(struct runs *runs, struct err *err)
{
	struct observation observation;
	int ret;

	step(runs, "a first run");
	ret = run_once(runs, NOTHING, &observation, err);
	if (ret)
		return ret;
	if (observation.duration_s < WALL_MIN_S)
		return err__set(err, -EINVAL,
				"cannot measure %s: it ran for %.0f ms, and runs under %.0f ms are "
				"lost in the noise of the start. Give it more work",
				runs->opts->command[0], observation.duration_s * 1e3,
				WALL_MIN_S * 1e3);
	if (observation.duration_s >= LONG_S) {
		keep(&runs->series[NOTHING], &observation);
		step(runs,
		     "one run takes %.0f s: at least %.0f min in all. Ctrl-C stops and shows the "
		     "results so far",
		     observation.duration_s, observation.duration_s * ROUNDS_MIN * 3 / 60);
	}
	return 0;
}

static int run_rounds(struct runs *runs, struct err *err)
{
	double limit_s = runs->opts->duration_s, used_s = 0, round_s = 0;
	uint64_t start_ns = now_ns();
	int ret = first_run(runs, err);

	while (!ret && runs->n_rounds < ROUNDS_MAX) {
		if (limit_s > 0 && runs->n_rounds && used_s + round_s > limit_s)
			break;
		if (limit_s <= 0 && runs->n_rounds >= ROUNDS_MIN && used_s + round_s > BUDGET_S)
			break;
		ret = run_round(runs, err);
		round_s = (now_ns() - start_ns) / 1e9 - used_s;
		used_s += round_s;
		if (runs->n_rounds == 1)
			step(runs, "a round takes %.1f s, all rounds about %.0f s", round_s,
			     max_of(limit_s > 0 ? limit_s : BUDGET_S, ROUNDS_MIN * round_s));
	}
	return ret == -EINTR && runs->series[RECORD_99].n ? 0 : ret;
}

/* --- the tables --- */

static void add_seconds(struct result *result, const double *values, size_t n)
{
	double sorted[ROUNDS_MAX];
	struct figure figure;

	memcpy(sorted, values, n * sizeof(*values));
	figure = figure__of(sorted, n);
	result__figure(result, &figure, 3);
}

static void add_times(const struct runs *runs, struct result *result)
{
	static const char *const columns[] = {
		"under", "wall|s", "wall, to nothing|times", "CPU|s", "CPU, to nothing|times", NULL
	};
	const struct series *base = &runs->series[NOTHING];
	bool unsure = false;

	result__table(result, "command", "The command's time", columns);
	for (int way = 0; way < WAYS_N; way++) {
		const struct series *series = &runs->series[way];
		size_t n = min_of(series->n, base->n);
		struct figure wall = figure__ratio(series->wall_s, base->wall_s, n);
		struct figure cpu = figure__ratio(series->cpu_s, base->cpu_s, n);

		if (series->off || !series->n)
			continue;
		result__row(result);
		result__text(result, "%s", infos[way].text);
		add_seconds(result, series->wall_s, series->n);
		if (way != NOTHING)
			result__ratio(result, &wall, false);
		else
			result__empty(result);
		add_seconds(result, series->cpu_s, series->n);
		if (way != NOTHING)
			result__ratio(result, &cpu, false);
		unsure = unsure || wall.unsure;
	}
	if (runs->reason[0])
		result__note(result, "%s", runs->reason);
	if (unsure)
		result__note(result, "only %zu round%s: the intervals (?) are uncertain", base->n,
			     base->n == 1 ? "" : "s");
}

static void add_work(const struct runs *runs, struct result *result)
{
	static const char *const columns[] = { "way",	      "braid's CPU|s a run",
					       "memory|MiB",  "samples|a run",
					       "complete|%",  "lost",
					       "calls|a run", NULL };

	result__table(result, "command-braid", "What braid itself does, from beginning to end",
		      columns);
	for (int way = RECORD_99; way < WAYS_N; way++) {
		const struct series *series = &runs->series[way];

		if (series->off || !series->n)
			continue;
		result__row(result);
		result__text(result, "%s", infos[way].text);
		result__number(result, series->own_cpu_s / series->n, 2);
		result__number(result, series->memory_bytes / 1048576.0, 1);
		if (way == CALLS) {
			result__empty(result);
			result__empty(result);
		} else {
			result__number(result, (double)series->samples / series->n, 0);
			result__number(result, 100.0 * series->complete / series->samples, 2);
		}
		result__number(result, series->lost, 0);
		if (way == CALLS)
			result__number(result, (double)series->calls / series->n, 0);
	}
}

int bench__command(const struct bench_opts *opts, struct result *result, struct err *err)
{
	struct runs runs = { .opts = opts };
	struct interrupt interrupt;
	int ret = interrupt__open(&interrupt, err);

	if (ret)
		return ret;
	runs.interrupt = &interrupt;
	runs.series[CALLS].off = true;
	ret = run_rounds(&runs, err);
	interrupt__close(&interrupt);
	if (ret)
		return ret;
	add_times(&runs, result);
	add_work(&runs, result);
	return 0;
}
