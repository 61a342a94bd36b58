// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/probe_costs.h"
#include "core/base/util.h"
#include "core/target/procfs.h"
#include "probes/probe_process.h"
#include "probes/probe_walkers.h"

/* `braid bench -p PID`: counts the hits of a process's probes, and multiplies them by the cost of a
 * hit on this machine. docs/reference/bench.md explains the meaning and the limits of the result.
 */

#define DURATION_S 2.0
#define ROUNDS	   7
#define LISTED	   300 /* bytes of a list of probes */

struct subject {
	const struct bench_opts *opts;
	double duration_s;
	struct procfs_info info;
	struct probe_walkers walkers;
	struct probe_process probes;
	size_t n_requested; /* number of enabled rows */
	struct probe_costs costs;
};

/* --- the process --- */

/* Leaves out the probes of runtimes that are not enabled. */
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
			image->rows[k].selected = image->rows[k].selected && enabled;
			subject->n_requested += image->rows[k].selected;
		}
	}
}

static int look_at(struct subject *subject, struct err *err)
{
	int ret = procfs__target(subject->opts->pid, &subject->info, err);

	if (ret)
		return ret;
	subject->walkers.runtimes = subject->opts->runtimes;
	ret = probe_process__open(subject->info.pid, probe_walkers__ask, &subject->walkers,
				  &subject->probes, err);
	if (!ret)
		choose_rows(subject);
	return ret;
}

/* Checks that the process still runs and is the same one. */
static int check_alive(const struct subject *subject, struct err *err)
{
	struct procfs_info info;

	if (!procfs__info(subject->info.pid, &info, NULL) && info.state != 'Z' &&
	    info.state != 'X' && info.start_ticks == subject->info.start_ticks)
		return 0;
	return err__set(err, -ESRCH, "PID %u (%s) ended while its probes were counted",
			subject->info.pid, subject->info.name);
}

/* --- counting --- */

/* Lists the enabled probes, "python:function__entry, ...". These names are braid's, not the file's.
 */
static void list_requested(const struct subject *subject, char ret[LISTED])
{
	size_t len = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < subject->probes.n_images; i++)
		for (size_t k = 0; k < subject->probes.images[i]->n_rows; k++) {
			const struct probe_row *row = &subject->probes.images[i]->rows[k];
			char name[100];

			if (!row->selected)
				continue;
			snprintf(name, sizeof(name), "%s:%s", row->provider, row->want->name);
			if (strstr(ret, name) || len + strlen(name) + 3 > LISTED)
				continue; /* a probe with several sites, or no space left */
			len += sprintf(ret + len, "%s%s", len ? ", " : "", name);
		}
}

static int measure(struct subject *subject, struct err *err)
{
	char names[LISTED];
	int ret;

	subject->opts->on_step("what a hit costs on this machine ...");
	ret = probe_costs__measure(ROUNDS, &subject->costs, err);
	if (ret || !subject->n_requested)
		return ret;
	list_requested(subject, names);
	subject->opts->on_step("counting hits in PID %u for %.1f s, of %s: each costs it about a "
			       "microsecond",
			       subject->info.pid, subject->duration_s, names);
	ret = probe_process__measure(&subject->probes, subject->duration_s, err);
	/* The end of the process explains any other error. */
	return check_alive(subject, err) ? -ESRCH : ret;
}

/* --- tables --- */

/* Returns the cost in CPU seconds per second. */
static double cost_of(const struct subject *subject, const struct probe_image *image,
		      const struct probe_row *row)
{
	return row->hits / max_of(image->measured_s, 1e-9) *
	       probe_costs__hit_ns(&subject->costs, probe_point__trap(&row->point)) / NSEC_PER_SEC;
}

static void add_rows(const struct subject *subject, const struct probe_image *image,
		     struct result *result)
{
	for (size_t k = 0; k < image->n_rows; k++) {
		const struct probe_row *row = &image->rows[k];
		enum trap_kind trap = probe_point__trap(&row->point);

		if (!row->selected)
			continue;
		result__row(result);
		result__text(result, "%s", image->runtime);
		result__text(result, "%s:%s", row->provider, row->name);
		result__text(result, "0x%llx", (unsigned long long)row->point.pc_vaddr);
		result__text(result, "%s", trap__text(trap));
		result__number(result, row->hits / max_of(image->measured_s, 1e-9), 0);
		result__number(result, probe_costs__hit_ns(&subject->costs, trap), 0);
		result__number(result, 1000 * cost_of(subject, image, row), 2);
	}
}

/* Explains why probes do not see calls, and the remedy, as `braid probes` reports it. */
static void note_ladder(const struct probe_image *image, struct result *result)
{
	static const char *const names[] = {
		[RUNG_USDT] = "probe sites", [RUNG_UPROBE] = "function probes"
	};

	if (!image->runtime || image->ladder[RUNG_USDT].works || image->ladder[RUNG_UPROBE].works)
		return;
	result__note(result, "%s %s: no calls are seen by probes.", image->runtime, image->version);
	for (enum probe_rung rung = RUNG_USDT; rung <= RUNG_UPROBE; rung++) {
		const struct probe_source *source = &image->ladder[rung];

		result__note(result, "  %s: %s", names[rung], source->reason);
		if (source->remedy)
			result__note(result, "    -> %s", source->remedy);
	}
}

/* Explains the figures and their limits. */
static void note_meaning(const struct subject *subject, double sum_s, struct result *result)
{
	long cpus = max_of(sysconf(_SC_NPROCESSORS_ONLN), 1L);

	result__note(result,
		     "Total: %.2f ms of CPU time a second, %.2f %% of this machine (hits x cost of "
		     "a hit). The process used %.2f s of CPU time meanwhile.",
		     1000 * sum_s, 100 * sum_s / cpus, subject->probes.cpu_s);
	result__note(result,
		     "hits: counted for %.1f s. Counting slows the process, which would otherwise "
		     "reach more hits in the same time.",
		     subject->duration_s);
	result__note(result, "a hit: the cost under `braid calls` in a loop of braid's own on this "
			     "machine: the trap and half of what the BPF programs add to a pair. "
			     "It is higher in a program with cold caches whose names are read.");
	result__note(result,
		     "So both are lower bounds of the cost of `braid calls`. `braid record` by "
		     "walking needs no probes: `braid bench` measures its cost.");
}

static void add_probes(const struct subject *subject, struct result *result)
{
	static const char *const columns[] = { "runtime",	"probe",
					       "address",	"probed instruction",
					       "hits|/s",	"a hit|ns",
					       "CPU time|ms/s", NULL };
	bool runtime = false;
	double sum_s = 0;

	result__table(result, "probes", "Its probes: hits, and what so many cost here", columns);
	for (size_t i = 0; i < subject->probes.n_images; i++) {
		const struct probe_image *image = subject->probes.images[i];

		runtime = runtime || image->runtime;
		add_rows(subject, image, result);
		for (size_t k = 0; k < image->n_rows; k++)
			if (image->rows[k].selected)
				sum_s += cost_of(subject, image, &image->rows[k]);
	}
	if (subject->n_requested)
		note_meaning(subject, sum_s, result);
	for (size_t i = 0; i < subject->probes.n_images; i++)
		note_ladder(subject->probes.images[i], result);
	if (!runtime)
		result__note(
			result,
			"It runs no runtime that braid supports: probes cannot see calls in it.");
	for (size_t i = 0; i < subject->probes.n_unread; i++)
		result__note(result, "%s", subject->probes.unread[i].text);
}

int bench__process(const struct bench_opts *opts, struct result *result, struct err *err)
{
	struct subject subject = { .opts = opts,
				   .duration_s =
					   opts->duration_s > 0 ? opts->duration_s : DURATION_S };
	int ret = look_at(&subject, err);

	if (!ret)
		ret = measure(&subject, err);
	if (!ret)
		add_probes(&subject, result);
	probe_process__done(&subject.probes);
	return ret;
}
