// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/counted.h"
#include "bench/samples.h"
#include "core/procfs.h"
#include "core/util.h"
#include "probes/probe_walkers.h"

/* `braid bench -p PID`: what braid would cost a running process, without doing it: its stacks are
 * sampled for a moment, and the hits of its probes counted, both announced. docs/bench.md has the
 * reasoning. */

#define DURATION_S 2.0
#define ROUNDS	   3
#define LISTED	   300 /* bytes of a list of probes */

/* With less in all of the time it is looked at, a process tells nothing about its work. */
#define CPU_LEAST_S 0.01

#define TICK_NS 200000 /* between looks at the mode it is in */

#define MOST 0.6 /* of its CPU time, for hits: worth a warning */

/* How often it is sampled to see what a sample costs. At 99 Hz caches are cold, beyond 999 Hz what
 * a sample costs stays the same. */
static const uint32_t measured_hz[] = { 99, 999 };
#define MEASURED (sizeof(measured_hz) / sizeof(*measured_hz))

static const uint32_t probed_hz[] = { 99, 999 }, walked_hz[] = { 99, 999, 4999 };

struct subject {
	const struct bench_opts *opts;
	double duration_s;
	struct procfs_info info;
	unsigned cpus; /* of the machine */
	struct probe_walkers walkers;
	struct probe_process probes;
	size_t n_wanted; /* rows */
	struct calibration calibration;
	struct sample_cost sample[MEASURED]; /* samples 0: unknown */
	double cpus_used;		     /* CPU seconds of its own work in a second */
	struct mode_sampler *modes;
	struct mode_ticks plain, meanwhile; /* without probes; while hits are counted */
	struct counted counted;
};

static void say(const struct subject *subject, const char *what)
{
	if (subject->opts->on_step)
		subject->opts->on_step("%s", what);
}

/* --- what the process is --- */

/* Leaves out the probes of runtimes that were not asked for. */
static void choose_rows(struct subject *subject)
{
	const struct runtime *const *runtimes = subject->opts->runtimes;

	for (size_t i = 0; i < subject->probes.n_images; i++) {
		struct probe_image *image = subject->probes.images[i];
		bool enabled = false;

		for (int r = 0; runtimes[r] && image->runtime; r++)
			if (!strcmp(runtimes[r]->name, image->runtime))
				enabled = subject->opts->enabled & 1U << r;
		for (size_t k = 0; k < image->n_rows; k++) {
			image->rows[k].wanted = image->rows[k].wanted && enabled;
			subject->n_wanted += image->rows[k].wanted;
		}
	}
}

static int look_at(struct subject *subject, struct err *err)
{
	int code = procfs__target(subject->opts->pid, &subject->info, err);

	if (code)
		return code;
	subject->walkers.runtimes = subject->opts->runtimes;
	code = probe_process__open(subject->info.pid, probe_walkers__ask, &subject->walkers,
				   &subject->probes, err);
	if (!code)
		choose_rows(subject);
	return code;
}

/* Is it still there, and still the same? */
static int check_alive(const struct subject *subject, struct err *err)
{
	struct procfs_info info;

	if (!procfs__info(subject->info.pid, &info, NULL) && info.state != 'Z' &&
	    info.state != 'X' && info.start_ticks == subject->info.start_ticks)
		return 0;
	return err__set(err, -ESRCH, "PID %u (%s) ended while it was looked at", subject->info.pid,
			subject->info.name);
}

/* --- measuring it --- */

static int idle(const struct subject *subject, struct err *err)
{
	return err__set(err, -ENODATA,
			"PID %u (%s) has used no CPU time to speak of: there is nothing to predict "
			"from. Look at it when it is at work, or for longer (-d SECONDS)",
			subject->info.pid, subject->info.name);
}

static void begin_count(void *ctx)
{
	struct subject *subject = ctx;

	subject->meanwhile = mode_sampler__ticks(subject->modes);
}

static void end_count(void *ctx)
{
	struct subject *subject = ctx;

	subject->meanwhile = mode_sampler__since(subject->modes, &subject->meanwhile);
}

/* Also how much of the CPUs it takes, as nothing else disturbs it meanwhile. */
static int sample(struct subject *subject, struct err *err)
{
	double start_s = now_ns() / 1e9, cpu_s = procfs__cpu_s(subject->info.pid), cost_s = 0;
	bool unsure;
	int code;

	subject->plain = mode_sampler__ticks(subject->modes);
	for (size_t i = 0; i < MEASURED; i++) {
		struct sample_cost *cost = &subject->sample[i];
		struct sample_cost_opts opts = { .runtimes = subject->opts->runtimes,
						 .enabled = subject->opts->enabled,
						 .unwind = UNWIND_MODE_AUTO,
						 .source = RUNTIME_SOURCE_WALK,
						 .frequency_hz = measured_hz[i],
						 .duration_s = subject->duration_s / (i + 1) };

		code = sample_cost__measure(&opts, subject->info.pid, cost, err);
		if (code && check_alive(subject, err))
			return -ESRCH;
		if (code && code != -ENODATA)
			return code;
		if (code)
			*cost = (struct sample_cost) {};
		cost_s += cost->samples *
			  (cost->kernel_ns + subject->calibration.interrupt.median) / NSEC_PER_SEC;
	}
	subject->plain = mode_sampler__since(subject->modes, &subject->plain);
	cost_s += (subject->plain.user + subject->plain.kernel) *
		  subject->calibration.interrupt.median / NSEC_PER_SEC;
	cpu_s = procfs__cpu_s(subject->info.pid) - cpu_s;
	code = check_alive(subject, err);
	if (code || cpu_s < CPU_LEAST_S)
		return code ? code : idle(subject, err);
	subject->cpus_used =
		prediction__rest_s(cpu_s, cost_s, &unsure) / (now_ns() / 1e9 - start_s);
	return 0;
}

/* "python:function__entry, ..."; these names are ours, not the file's. */
static void list_wanted(const struct subject *subject, char ret[LISTED])
{
	size_t len = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < subject->probes.n_images; i++)
		for (size_t k = 0; k < subject->probes.images[i]->n_rows; k++) {
			const struct probe_row *row = &subject->probes.images[i]->rows[k];
			char name[100];

			if (!row->wanted)
				continue;
			snprintf(name, sizeof(name), "%s:%s",
				 row->want->provider   ? row->want->provider
				 : row->point.retprobe ? "uretprobe"
						       : "uprobe",
				 row->want->name);
			if (strstr(ret, name) || len + strlen(name) + 3 > LISTED)
				continue; /* it has several sites */
			len += sprintf(ret + len, "%s%s", len ? ", " : "", name);
		}
}

static double dearest_ns(const struct subject *subject)
{
	double ns = 0;

	for (size_t i = 0; i < subject->probes.n_images; i++) {
		const struct probe_image *image = subject->probes.images[i];

		for (size_t k = 0; k < image->n_rows; k++)
			if (image->rows[k].wanted)
				ns = max_of(ns, counted__hit_ns(image, &image->rows[k],
								&subject->calibration));
	}
	return ns;
}

static int count(struct subject *subject, struct err *err)
{
	const struct probe_watch watch = { begin_count, end_count, subject };
	char names[LISTED];
	int code;

	if (!subject->n_wanted)
		return 0;
	list_wanted(subject, names);
	if (subject->opts->on_step)
		subject->opts->on_step("counting hits in PID %u for %.1f s, of %s: each costs it "
				       "%.1f us",
				       subject->info.pid, subject->duration_s, names,
				       dearest_ns(subject) / 1000);
	code = probe_process__measure(&subject->probes, subject->duration_s, &watch, err);
	if (check_alive(subject, err)) /* whatever else that has led to */
		return -ESRCH;
	if (code)
		return code;
	if (subject->probes.cpu_s < CPU_LEAST_S)
		return idle(subject, err);
	counted__of(&subject->probes, &subject->calibration, &subject->plain, &subject->meanwhile,
		    &subject->counted);
	return 0;
}

static int measure(struct subject *subject, struct err *err)
{
	int code;

	say(subject, "calibrating: what probes and samples cost on this machine ...");
	code = calibration__measure(1, ROUNDS, &subject->calibration, err);
	if (code)
		return code;
	if (subject->opts->on_step)
		subject->opts->on_step("sampling PID %u, %.1f s at %u Hz and %.1f s at %u Hz: each "
				       "sample costs it some microseconds (the kernel's BPF "
				       "statistics are on meanwhile, and from now on it is "
				       "seen %u times a second in which mode it is)",
				       subject->info.pid, subject->duration_s, measured_hz[0],
				       subject->duration_s / 2, measured_hz[1],
				       (unsigned)(NSEC_PER_SEC / TICK_NS));
	code = mode_sampler__start(subject->info.pid, TICK_NS, &subject->modes, err);
	if (!code)
		code = sample(subject, err);
	if (!code)
		code = count(subject, err);
	mode_sampler__stop(subject->modes);
	return code;
}

/* --- tables --- */

/* Its own work is what hits have left of the CPU time: the more they took, the less that is known.
 */
static void note_error(const struct counted *counted, struct result *result)
{
	if (counted->unsure)
		result__note(result,
			     "Hits took nearly all of its CPU time: how often they come without "
			     "being counted cannot be told, but probes would slow it many times.");
	else if (counted->hits_cost_s > MOST * (counted->hits_cost_s + counted->own_cpu_s))
		result__note(result, "Hits took most of its CPU time: calls/s and what follows "
				     "from them may be wrong by a third.");
}

static void add_process(const struct subject *subject, struct result *result)
{
	static const char *const columns[] = { "PID",
					       "name",
					       "CPUs here",
					       "CPU time without probes|s/s",
					       "CPU time while counted|s",
					       "of that for hits|s",
					       NULL };

	result__table(result, "process", "The process", columns);
	result__row(result);
	result__number(result, subject->info.pid, 0);
	result__text(result, "%s", subject->info.name);
	result__number(result, subject->cpus, 0);
	result__number(result, subject->cpus_used, 3);
	if (!subject->n_wanted)
		return;
	result__number(result, subject->probes.cpu_s, 3);
	result__number(result, subject->counted.hits_cost_s, 3);
	note_error(&subject->counted, result);
}

static void add_rows(const struct subject *subject, const struct probe_image *image,
		     struct result *result)
{
	for (size_t k = 0; k < image->n_rows; k++) {
		const struct probe_row *row = &image->rows[k];

		if (!row->wanted)
			continue;
		result__row(result);
		result__text(result, "%s", image->runtime);
		result__text(result, "%s:%s", row->provider, row->name);
		result__text(result, "0x%llx", (unsigned long long)row->point.pc_vaddr);
		result__text(result, "%s", trap__text(probe_point__trap(&row->point)));
		result__number(result, row->hits / max_of(image->measured_s, 1e-9), 0);
		result__number(result,
			       subject->counted.dearer *
				       counted__hit_ns(image, row, &subject->calibration),
			       0);
	}
}

/* Why no calls are seen by probes, and what would help: as `braid probes` tells it. */
static void note_ladder(const struct probe_image *image, struct result *result)
{
	static const char *const names[] = {
		[RUNG_USDT] = "probe sites", [RUNG_UPROBE] = "function probes"
	};

	result__note(result, "%s %s: no calls are seen by probes.", image->runtime, image->version);
	for (enum probe_rung rung = RUNG_USDT; rung <= RUNG_UPROBE; rung++) {
		const struct probe_source *source = &image->ladder[rung];

		result__note(result, "  %s: %s", names[rung], source->reason);
		if (source->remedy)
			result__note(result, "    -> %s", source->remedy);
	}
}

static void add_probes(const struct subject *subject, struct result *result)
{
	static const char *const columns[] = { "runtime", "probe",  "address", "probed instruction",
					       "hits|/s", "hit|ns", NULL };
	bool runtime = false;

	result__table(result, "probes",
		      "Its probes, as they were counted (which slows it: below they are not)",
		      columns);
	for (size_t i = 0; i < subject->probes.n_images; i++)
		add_rows(subject, subject->probes.images[i], result);
	for (size_t i = 0; i < subject->probes.n_images; i++) {
		const struct probe_image *image = subject->probes.images[i];

		runtime = runtime || image->runtime;
		if (image->runtime && !counted__sees_calls(image))
			note_ladder(image, result);
	}
	if (!runtime)
		result__note(result, "No runtime that braid knows runs in it: there are no calls "
				     "to see by probes.");
	for (size_t i = 0; i < subject->probes.n_unread; i++)
		result__note(result, "%s", subject->probes.unread[i].text);
}

/* What a sample costs at this rate: measured at the next lower one. */
static const struct sample_cost *sample_at(const struct subject *subject, uint32_t hz)
{
	const struct sample_cost *found = NULL;

	for (size_t i = 0; i < MEASURED; i++)
		if (subject->sample[i].samples && (!found || measured_hz[i] <= hz))
			found = &subject->sample[i];
	return found;
}

/* `calls`, with this listener at both ends; LISTENER_COUNT: none. `hz` 0: no samples. */
static struct prediction predict(const struct subject *subject, enum listener listener, uint32_t hz)
{
	const struct counted *counted = &subject->counted;
	const struct sample_cost *cost = hz ? sample_at(subject, hz) : NULL;
	struct prediction prediction = {};

	if (listener != LISTENER_COUNT && counted->calls) {
		prediction.calls_per_s =
			counted->unsure ? NAN
					: counted->calls / counted->own_cpu_s * subject->cpus_used;
		prediction.call_ns =
			counted->calls_cost_s[listener] / counted->calls * NSEC_PER_SEC;
	}
	if (cost) {
		prediction.samples_per_s = hz * subject->cpus_used;
		prediction.sample_ns = cost->kernel_ns + subject->calibration.interrupt.median;
		prediction.own_ns = cost->user_ns;
	}
	prediction__conclude(&prediction, subject->cpus_used, subject->cpus);
	return prediction;
}

static void add_number(struct result *result, bool there, double number, int decimals)
{
	if (there)
		result__number(result, number, decimals);
	else
		result__empty(result);
}

static void add_prediction(const struct subject *subject, struct result *result,
			   const char *command, enum listener listener, uint32_t hz)
{
	struct prediction prediction = predict(subject, listener, hz);
	bool calls = listener != LISTENER_COUNT, samples = hz && sample_at(subject, hz);
	char text[64];

	snprintf(text, sizeof(text), hz ? "%s -F %u" : "%s", command, hz);
	result__row(result);
	result__text(result, "%s", text);
	add_number(result, calls, prediction.calls_per_s, 0);
	add_number(result, calls && prediction.call_ns > 0, prediction.call_ns, 0);
	add_number(result, samples, prediction.samples_per_s, 1);
	add_number(result, samples, prediction.sample_ns, 0);
	add_number(result, samples, prediction.own_ns, 0);
	if (!samples && hz)
		return;
	result__number(result, 100 * prediction.one_cpu, 2);
	result__number(result, 100 * prediction.machine, 2);
	result__number(result, 100 * prediction.slowdown, 2);
}

static void add_predictions(const struct subject *subject, struct result *result)
{
	static const char *const columns[] = { "braid ...",  "calls|/s",  "call|ns",
					       "samples|/s", "sample|ns", "braid's own|ns",
					       "one CPU|%",  "machine|%", "slowdown|%",
					       NULL };
	bool sees_calls = false;

	for (size_t i = 0; i < subject->probes.n_images; i++)
		sees_calls = sees_calls || (subject->probes.images[i]->runtime &&
					    counted__sees_calls(subject->probes.images[i]));
	result__table(result, "predictions", "What braid would cost it", columns);
	if (sees_calls && subject->n_wanted) {
		add_prediction(subject, result, "calls", LISTENER_CALLS, 0);
		for (size_t i = 0; i < ARRAY_SIZE(probed_hz); i++)
			add_prediction(subject, result, "record --source probes", LISTENER_SHADOW,
				       probed_hz[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(walked_hz); i++)
		add_prediction(subject, result, "record --source walk", LISTENER_COUNT,
			       walked_hz[i]);
	result__note(result, "Rates are those of its work as it was, braid's own time is a "
			     "sample's. one CPU = (calls/s x call + samples/s x (sample + braid's "
			     "own)) / 1e9; machine = that / CPUs.");
	result__note(result, "slowdown: so much more CPU time it takes for the same work.");
}

int bench__process(const struct bench_opts *opts, struct result *result, struct err *err)
{
	struct subject subject = { .opts = opts,
				   .duration_s =
					   opts->duration_s > 0 ? opts->duration_s : DURATION_S,
				   .cpus = max_of(sysconf(_SC_NPROCESSORS_ONLN), 1L) };
	int code = look_at(&subject, err);

	if (!code)
		code = measure(&subject, err);
	if (!code) {
		add_process(&subject, result);
		add_probes(&subject, result);
		add_predictions(&subject, result);
	}
	probe_process__done(&subject.probes);
	return code;
}
