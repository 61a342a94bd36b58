// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/runtime_ways.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/kernel_part.h"
#include "core/util.h"
#include "probes/attach.h"

#define TARGET_NS      60e6 /* one measurement */
#define WARM_UP_PART   8    /* of it, beforehand */
#define WARM_UPS_MAX   60
#define WARM_UPS_STALE 12
#define FASTER	       0.95

static const struct {
	const char *text;
	bool observed, by_probes;
	enum runtime_source source;
	unsigned hz;
} infos[WAYS_N] = {
	[WAY_NOTHING] = { "nothing", false, false, RUNTIME_SOURCE_WALK, 0 },
	[WAY_WALK_99] = { "record, 99 Hz", true, false, RUNTIME_SOURCE_WALK, 99 },
	[WAY_WALK_999] = { "record, 999 Hz", true, false, RUNTIME_SOURCE_WALK, 999 },
	[WAY_READY] = { "prepared for probes", false, true, RUNTIME_SOURCE_WALK, 0 },
	[WAY_EMPTY] = { "probes, empty program", false, true, RUNTIME_SOURCE_WALK, 0 },
	[WAY_CALLS] = { "calls", true, true, RUNTIME_SOURCE_CALLS, 0 },
	[WAY_PROBES_99] = { "record by probes, 99 Hz", true, true, RUNTIME_SOURCE_PROBES, 99 },
	[WAY_PROBES_999] = { "record by probes, 999 Hz", true, true, RUNTIME_SOURCE_PROBES, 999 },
};

const char *way__text(enum way way)
{
	return infos[way].text;
}

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

static const char *name_of(const struct ways *ways)
{
	return ways->opts->runtimes[ways->runtime]->name;
}

static int observe(const struct ways *ways, enum way way, struct observer **ret, struct err *err)
{
	struct observer_opts opts = {
		.runtimes = ways->opts->runtimes,
		.enabled = 1U << ways->runtime,
		.pid = workload__pid(infos[way].by_probes ? ways->probed : ways->plain),
		.source = infos[way].source,
		.frequency_hz = infos[way].hz,
		.callee = WORKLOAD_CALLEE,
	};

	return observer__start(&opts, ret, err);
}

/* --- the empty program --- */

/* While this semaphore is up CPython 3.11 takes another path, on which its probes fire. */
static int raise_line(const struct ways *ways, const struct probe_image *image,
		      struct probe_links *links, struct err *err)
{
	const struct probe_row *line = NULL;
	bool needed = false;

	for (size_t i = 0; i < image->n_rows; i++) {
		const struct probe_row *row = &image->rows[i];

		needed = needed || (row->wanted && row->want->life == PROBE_LIVES_WHEN);
		if (!strcmp(row->provider, "python") && !strcmp(row->name, "line"))
			line = row;
	}
	if (!needed || !line || !line->point.semaphore_vaddr)
		return 0;
	return probe_links__raise_semaphore(links, ways->skel->progs.nothing, ways->process.pid,
					    image->file, line->point.semaphore_vaddr, err);
}

static int attach_empty(const struct ways *ways, struct probe_links **ret, struct err *err)
{
	struct probe_links *links = probe_links__new();
	int code = links ? 0 : err__set(err, -ENOMEM, "out of memory");

	for (size_t i = 0; !code && i < ways->process.n_images; i++) {
		const struct probe_image *image = ways->process.images[i];

		for (size_t k = 0; !code && k < image->n_rows; k++)
			if (image->rows[k].wanted)
				code = probe_links__attach(links, ways->skel->progs.nothing,
							   ways->process.pid, &image->rows[k].point,
							   1, err);
		if (!code)
			code = raise_line(ways, image, links, err);
	}
	if (code)
		probe_links__free(links);
	else
		*ret = links;
	return code;
}

/* What the walkers say of a file plays no part here. */
static void ask_nobody(void *ctx, const struct elf_file *file, struct probe_walker *ret)
{
	(void)ctx;
	(void)file;
	(void)ret;
}

static int open_empty(struct ways *ways, struct err *err)
{
	static const char *const programs[] = { "nothing", NULL }, *const maps[] = { NULL };
	size_t n = 0;
	int code = probe_process__open(workload__pid(ways->probed), ask_nobody, NULL,
				       &ways->process, err);

	if (!code)
		code = kernel_part__open(programs, maps, &ways->skel, err);
	if (!code)
		code = kernel_part__load(ways->skel, err);
	for (size_t i = 0; i < ways->process.n_images; i++)
		for (size_t k = 0; k < ways->process.images[i]->n_rows; k++)
			n += ways->process.images[i]->rows[k].wanted;
	if (!code && !n) {
		ways->series[WAY_EMPTY].off = true;
		note(ways, "no floor: `braid probes` knows of no sites that are wanted there");
	}
	return code;
}

/* --- beginning and end --- */

/* More and more of it, until it takes its time. `ret_n`, `ret_ns`: the last and longest; adds all
 * calls to `calls`. */
static int grow(struct workload *workload, enum workload_task task, uint64_t *ret_n, double *ret_ns,
		uint64_t *calls, struct err *err)
{
	uint64_t n = 1, made;
	int code = 0;

	*ret_ns = 0;
	while (!code && *ret_ns < TARGET_NS / 2 && n < INT32_MAX / 2) {
		n *= 2;
		code = workload__run(workload, task, n, ret_ns, &made, err);
		*calls += code ? 0 : made;
	}
	*ret_n = n;
	return code;
}

/* Until it no longer gets faster: compilers have done what they do. */
static int warm_up(struct workload *workload, struct err *err)
{
	for (int task = 0; task < WORKLOAD_TASKS_N; task++) {
		double ns, best = INFINITY;
		uint64_t n, calls = 0;
		int stale = 0, code = grow(workload, task, &n, &ns, &calls, err);

		for (int i = 0; !code && i < WARM_UPS_MAX && stale < WARM_UPS_STALE; i++) {
			stale = ns < FASTER * best ? 0 : stale + 1;
			best = min_of(best, ns);
			code = workload__run(workload, task, n, &ns, &calls, err);
		}
		if (code)
			return code;
	}
	return 0;
}

/* Attaches for a moment, to see whether there are probes. */
static int try_probes(struct ways *ways, enum way way, struct err *err)
{
	const struct observed_source *source;
	struct observation observation;
	struct observer *observer;
	int code = observe(ways, way, &observer, err);

	if (!code)
		code = observer__stop(observer, &observation, err);
	if (code)
		return code;
	source = observation__source(&observation, name_of(ways));
	if (source && strcmp(source->source, "none") != 0) {
		note(ways, "by probes: %s%s%s", source->source, source->reason[0] ? ": " : "",
		     source->reason);
		return open_empty(ways, err);
	}
	note(ways, "no calls, and no recording by probes: %s",
	     source ? source->reason : "braid does not find the runtime");
	if (ways->separate)
		workload__stop(ways->probed);
	ways->probed = NULL;
	ways->separate = false;
	for (int i = 0; i < WAYS_N; i++)
		if (infos[i].by_probes)
			ways->series[i].off = true;
	return 0;
}

static int open_inside(struct ways *ways, bool only_probed, struct err *err)
{
	const struct runtime *runtime = ways->opts->runtimes[ways->runtime];
	int code = workload__start(ways->interpreter, NULL, &ways->plain, err);

	if (code)
		return code;
	for (int i = 0; i < WAYS_N; i++)
		ways->series[i].by_probes = infos[i].by_probes;
	ways->separate = runtime->probe && runtime->prepare_command;
	if (!ways->separate) {
		ways->probed = ways->plain;
		ways->series[WAY_READY].off = true;
	} else {
		code = workload__start(ways->interpreter, runtime, &ways->probed, err);
		ways->separate = !code;
	}
	/* `calls` has more ways to be had than recording, but they are not what is looked for. */
	if (!code)
		code = try_probes(ways, only_probed ? WAY_PROBES_99 : WAY_CALLS, err);
	if (!code && !(only_probed && !ways->probed))
		code = warm_up(ways->plain, err);
	if (!code && ways->separate)
		code = warm_up(ways->probed, err);
	return code;
}

int ways__open(const struct bench_opts *opts, unsigned runtime,
	       const struct interpreter *interpreter, bool only_probed, struct ways **ret,
	       struct err *err)
{
	struct ways *ways = calloc(1, sizeof(*ways));
	int code;

	if (!ways)
		return err__set(err, -ENOMEM, "out of memory");
	ways->opts = opts;
	ways->runtime = runtime;
	ways->interpreter = interpreter;
	code = open_inside(ways, only_probed, err);
	if (code)
		ways__close(ways);
	else
		*ret = ways;
	return code;
}

void ways__close(struct ways *ways)
{
	if (!ways)
		return;
	if (ways->skel)
		braid_bpf__destroy(ways->skel);
	probe_process__done(&ways->process);
	if (ways->separate)
		workload__stop(ways->probed);
	workload__stop(ways->plain);
	free(ways);
}

/* --- one round --- */

/* The first time it also finds out how often takes long enough. */
static int measure_task(struct ways *ways, enum way way, enum workload_task task, struct err *err)
{
	struct workload *workload = infos[way].by_probes ? ways->probed : ways->plain;
	struct series *series = &ways->series[way];
	uint64_t *n = &series->n[task], calls = 0, part = max_of(*n / WARM_UP_PART, 1UL);
	double ns = 0;
	int code;

	do {
		code = workload__run(workload, task, part, &ns, &calls, err);
		series->called += task == WORKLOAD_CALLS ? calls : 0;
		if (*n)
			break;
		if (ns >= TARGET_NS / WARM_UP_PART || part > UINT32_MAX / 16)
			*n = max_of(part * TARGET_NS / max_of(ns, 1), 1);
		part *= 2;
	} while (!code && !*n);
	*n = min_of(*n, (uint64_t)INT32_MAX); /* Java's int */
	if (!code)
		code = workload__run(workload, task, *n, &ns, &calls, err);
	series->called += task == WORKLOAD_CALLS ? calls : 0;
	series->ns[task][ways->n_rounds] = ns / *n;
	return code;
}

/* One that has waited finds its caches cold, and its compilers may have work left. */
static int wake(struct ways *ways, enum way way, struct err *err)
{
	struct workload *workload = infos[way].by_probes ? ways->probed : ways->plain;
	uint64_t n, calls;
	double ns;
	int code = 0;

	for (int task = 0; !code && workload != ways->last && task < WORKLOAD_TASKS_N; task++) {
		calls = 0;
		code = grow(workload, task, &n, &ns, &calls, err);
		ways->series[way].called += task == WORKLOAD_CALLS ? calls : 0;
	}
	ways->last = workload;
	return code;
}

static int measure_tasks(struct ways *ways, enum way way, struct err *err)
{
	int code = wake(ways, way, err);

	if (!code)
		code = measure_task(ways, way, WORKLOAD_CALLS, err);

	return code ? code : measure_task(ways, way, WORKLOAD_ORDINARY, err);
}

/* A way that has turned out not to be there. */
static void judge(struct ways *ways, enum way way, const struct observation *observation)
{
	const struct observed_source *source = observation__source(observation, name_of(ways));

	if (source && strcmp(source->source, "none") != 0)
		return;
	ways->series[way].off = true;
	note(ways, "no recording by %s: %s", infos[way].by_probes ? "probes" : "walking",
	     source ? source->reason : "braid does not find the runtime");
}

static void add_observation(struct series *series, const struct observation *observation)
{
	series->run_cpu_s += observation->run_cpu_s;
	series->run_s += observation->duration_s;
	series->samples += observation->samples;
	series->lost += observation->lost;
	series->counted += observation->calls;
	series->memory_bytes = max_of(series->memory_bytes, observation->memory_bytes);
}

static int measure_way(struct ways *ways, enum way way, struct err *err)
{
	struct observation observation;
	struct observer *observer = NULL;
	struct probe_links *links = NULL;
	struct err stop_err = {};
	int code = 0, stopped;

	if (infos[way].observed)
		code = observe(ways, way, &observer, err);
	else if (way == WAY_EMPTY)
		code = attach_empty(ways, &links, err);
	if (code)
		return code;
	code = measure_tasks(ways, way, err);
	probe_links__free(links);
	if (!observer)
		return code;
	stopped = observer__stop(observer, &observation, &stop_err);
	if (!code && stopped) {
		*err = stop_err;
		return stopped;
	}
	if (!code && !ways->n_rounds)
		judge(ways, way, &observation);
	if (!code)
		add_observation(&ways->series[way], &observation);
	return code;
}

int ways__round(struct ways *ways, const struct interrupt *interrupt, struct err *err)
{
	if (ways->opts->on_step)
		ways->opts->on_step("%s %s: round %zu", ways->interpreter->runtime,
				    ways->interpreter->version, ways->n_rounds + 1);
	/* Forth and back, so that what comes first has no advantage. */
	for (int i = 0; i < WAYS_N; i++) {
		enum way way = ways->n_rounds % 2 ? WAYS_N - 1 - i : i;
		int code = 0;

		if (interrupt__came(interrupt))
			code = err__set(err, -EINTR, "interrupted");
		else if (!ways->series[way].off)
			code = measure_way(ways, way, err);
		if (code)
			return code;
	}
	ways->n_rounds++;
	return 0;
}
