// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/tracker_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "bpf/shadow.h"
#include "core/liveness.h"
#include "core/probe_hits.h"
#include "core/spaces.h"
#include "core/util.h"

void tracker__tell_source(struct tracker *tracker, struct process *process, int i,
			  const char *version, const char *source, const char *reason)
{
	if (tracker->opts.on_source)
		tracker->opts.on_source(tracker->opts.ctx, process, tracker->opts.runtimes[i],
					version, source, reason);
}

/* Is the shadow stack what this session is after, or the next thing to try? */
static bool wants_probes(const struct tracker *tracker, bool walks)
{
	if (tracker->opts.source == RUNTIME_SOURCE_AUTO || tracker->walk_instead)
		return tracker->opts.probes && !walks;
	return tracker->opts.probes;
}

const struct mapped *tracker__find_runtime(const struct process *process, int i)
{
	const struct image *image;
	size_t m;

	for (m = 0; m < process->n_mapped; m++) {
		image = process->mapped[m].image;
		if (image && image->runtimes[i].detected)
			return &process->mapped[m];
	}
	return NULL;
}

static struct runtime_target target_of(const struct process *process, int i,
				       const struct mapped *mapped)
{
	return (struct runtime_target) { .pid = process->pid,
					 .space = process->space->id,
					 .bias = mapped->bias,
					 .image = mapped->image->runtimes[i].image,
					 .file = mapped->image->file };
}

static void on_probed(struct process *process)
{
	struct procfs_info info = {};

	process->probes_judged = process->probes_judged || procfs__info(process->pid, &info, NULL);
	process->probed_ticks = info.cpu_ticks;
	process->space->walkers |= 1U << WALKER_SHADOW;
}

void tracker__probe(struct tracker *tracker, struct process *process, int i,
		    const struct mapped *mapped, bool tell)
{
	const struct runtime *runtime = tracker->opts.runtimes[i];
	const struct runtime_verdict *verdict = &mapped->image->runtimes[i].verdict;
	struct runtime_target target = target_of(process, i, mapped);
	struct runtime_probing probing = {};
	struct err err = {};

	if (tracker->paused && runtime->probe) {
		process->paused |= 1U << i;
		return;
	}
	if (!runtime->probe)
		err__set(&err, -ENOTSUP, "%s has no probes", runtime->name);
	else if (!kernel_half__load_probes(tracker->opts.half, &err) &&
		 !runtime->probe(tracker->opts.sessions[i], &target, tracker->opts.source, &probing,
				 &err))
		process->probed |= 1U << i;
	tracker->traps |= probing.traps;
	if (process->probed & 1U << i) {
		on_probed(process);
		if (tell)
			tracker__tell_source(tracker, process, i, verdict->version, probing.source,
					     probing.note);
		process->told_probed |= 1U << i;
		return;
	}
	if (tracker->opts.source == RUNTIME_SOURCE_AUTO && verdict->reason[0])
		err__set(&err, -ENOTSUP, "%s", verdict->reason); /* the better rung's reason */
	tracker__tell_source(tracker, process, i, verdict->version, "none", err.text);
}

#define PENDING_TOLD_NS (2 * NSEC_PER_SEC)

/* To be tried again. What takes long may never come: the user is told, once. */
static void keep_pending(struct tracker *tracker, struct process *process, int i,
			 const struct runtime_verdict *verdict, const char *reason)
{
	struct space *space = process->space;

	if (!(space->pending & 1U << i))
		space->pending_ns = now_ns();
	space->pending |= 1U << i;
	tracker->any_pending = true;
	if (space->told_pending & 1U << i || now_ns() < space->pending_ns + PENDING_TOLD_NS)
		return;
	space->told_pending |= 1U << i;
	tracker__tell_source(tracker, process, i, verdict->version, "none",
			     reason[0] ? reason : "it has not set up its state yet");
}

static void attach_runtime(struct tracker *tracker, struct process *process, int i,
			   const struct mapped *mapped)
{
	const struct runtime *runtime = tracker->opts.runtimes[i];
	const struct image_runtime *found = &mapped->image->runtimes[i];
	struct runtime_target target = target_of(process, i, mapped);
	enum runtime_source wanted = tracker->opts.source;
	bool map = wanted == RUNTIME_SOURCE_MAP ||
		   (runtime->walker < 0 && wanted != RUNTIME_SOURCE_CALLS);
	const char *reason = found->verdict.reason;
	struct err err = {};
	int code = -ENOTSUP;

	if (map && !runtime->label) {
		reason = "braid knows of no map of its code";
	} else if (found->image) {
		code = runtime->attach(tracker->opts.sessions[i], &target, &err);
		reason = err.text[0] ? err.text : reason;
	}
	if (code != -EAGAIN)
		process->space->pending &= ~(1U << i);
	if (code == -EAGAIN) {
		keep_pending(tracker, process, i, &found->verdict, reason);
		if (runtime->expect && wants_probes(tracker, true) && !tracker->paused) {
			process->expected |= 1U << i;
			runtime->expect(tracker->opts.sessions[i], &target);
		}
		return;
	}
	process->space->decided |= 1U << i;
	if (code >= 0)
		process->space->attached |= 1U << i;
	if (!map && wants_probes(tracker, process->space->attached & 1U << i)) {
		tracker__probe(tracker, process, i, mapped, true);
		return;
	}
	if (!code && !map && tracker->walk_instead && wanted == RUNTIME_SOURCE_PROBES)
		reason = tracker->why;
	if (process->space->attached & 1U << i && !map)
		process->space->walkers |= 1U << runtime->walker;
	tracker__tell_source(tracker, process, i, found->verdict.version,
			     code  ? "none"
			     : map ? "map"
				   : "walk",
			     reason);
}

struct runtime_range tracker__jit_callers(const struct tracker *tracker,
					  const struct process *process)
{
	struct runtime_range callers = {};
	const struct runtime_range *ranges;
	enum runtime_loops how;
	size_t m, n, i;
	int r;

	for (m = 0; m < process->n_mapped; m++)
		for (r = 0; process->mapped[m].image && tracker->opts.runtimes[r]; r++) {
			const struct runtime *runtime = tracker->opts.runtimes[r];
			const struct mapped *mapped = &process->mapped[m];

			if (!runtime->jit || !runtime->loops || !mapped->image->runtimes[r].image)
				continue;
			n = runtime->loops(mapped->image->runtimes[r].image, &ranges, &how);
			for (i = 0; i < n; i++) {
				uint64_t start = ranges[i].start + mapped->bias;
				uint64_t end = ranges[i].end + mapped->bias;

				if (!callers.start || start < callers.start)
					callers.start = start;
				if (end > callers.end)
					callers.end = end;
			}
		}
	if (callers.end - callers.start > UINT32_MAX)
		callers.end = callers.start; /* of several images */
	return callers;
}

/* Tells why there are no frames of a runtime that has no image in the process. */
static void tell_elsewhere(struct tracker *tracker, struct process *process, int i)
{
	const struct runtime *runtime = tracker->opts.runtimes[i];
	const char *why = NULL;

	if (runtime->elsewhere && tracker->opts.sessions[i] && !(process->space->decided & 1U << i))
		why = runtime->elsewhere(process->info.command);
	if (!why)
		return;
	process->space->decided |= 1U << i;
	tracker__tell_source(tracker, process, i, "", "none", why);
}

void tracker__attach_runtimes(struct tracker *tracker, struct process *process)
{
	size_t m;
	int i;

	for (i = 0; tracker->opts.runtimes[i]; i++) {
		tell_elsewhere(tracker, process, i);
		for (m = 0; m < process->n_mapped; m++) {
			const struct image *image = process->mapped[m].image;

			if (process->space->decided & 1U << i)
				break;
			if (image && image->runtimes[i].detected)
				attach_runtime(tracker, process, i, &process->mapped[m]);
		}
	}
}

void tracker__probe_child(struct tracker *tracker, struct process *child,
			  const struct process *parent)
{
	uint32_t wanted = parent->probed | parent->paused;
	const struct mapped *mapped;
	int i;

	if (!wanted || !tracker__lives(tracker, child))
		return; /* it lived for less time than probing takes */
	for (i = 0; tracker->opts.runtimes[i]; i++) {
		mapped = wanted & 1U << i ? tracker__find_runtime(child, i) : NULL;
		if (mapped)
			tracker__probe(tracker, child, i, mapped, true);
	}
}

void tracker__detach_all_probes(struct tracker *tracker)
{
	struct process *process;
	int i;

	for (i = 0; tracker->opts.runtimes[i]; i++)
		if (tracker->opts.sessions[i] && tracker->opts.runtimes[i]->unprobe_all)
			tracker->opts.runtimes[i]->unprobe_all(tracker->opts.sessions[i]);
	for (process = tracker->processes; process; process = process->hh.next)
		process->probed = process->expected = 0;
}

void tracker__unprobe(struct tracker *tracker, struct process *process)
{
	int i;

	for (i = 0; tracker->opts.runtimes[i]; i++)
		if ((process->probed | process->expected) & 1U << i)
			tracker->opts.runtimes[i]->unprobe(tracker->opts.sessions[i], process->pid);
	process->probed = process->expected = 0;
	process->paused = process->told_probed = process->told_paused = 0;
	process->probes_judged = false;
	process->hits = (struct probe_hits) {};
}

static void tell_dead(struct tracker *tracker, struct process *process,
		      const struct probe_hits *hits)
{
	bool silent = !(hits->entries + hits->returns);
	bool wanted = tracker->opts.source != RUNTIME_SOURCE_AUTO;
	char reason[RUNTIME_REASON_BYTES];
	int i;

	if (silent)
		snprintf(reason, sizeof(reason),
			 "its probes have not fired in a second of CPU time: it is in one long "
			 "call, or they are dead (`braid probes -p PID` measures them and has the "
			 "remedy)");
	else
		snprintf(reason, sizeof(reason),
			 "its probes are dead: those of entries fired %" PRIu64
			 " times, those of returns %" PRIu64 " (`braid probes -p PID` has the "
			 "remedy)",
			 hits->entries, hits->returns);
	for (i = 0; tracker->opts.runtimes[i]; i++)
		if (process->probed & 1U << i)
			tracker__tell_source(tracker, process, i, tracker__version(process, i),
					     wanted && silent ? "silent" : "none", reason);
}

static bool has_run(const struct process *process)
{
	struct procfs_info info;

	return !procfs__info(process->pid, &info, NULL) &&
	       info.cpu_ticks >= process->probed_ticks + sysconf(_SC_CLK_TCK);
}

/* Those that never fire are kept if they were asked for, as the process may be in one long call;
 * those of which one side only fires are not. */
static void judge(struct tracker *tracker, struct process *process, const struct probe_hits *hits)
{
	enum liveness liveness = liveness__of(hits->entries, hits->returns);

	if (liveness == LIVENESS_UNKNOWN && hits->entries + hits->returns)
		return; /* later ones may tell */
	process->probes_judged = true;
	if (liveness == LIVENESS_LIVES)
		return;
	tell_dead(tracker, process, hits);
	if (liveness == LIVENESS_UNKNOWN && tracker->opts.source != RUNTIME_SOURCE_AUTO)
		return;
	tracker__unprobe(tracker, process);
	process->space->walkers &= ~(1U << WALKER_SHADOW);
	tracker__publish(tracker, process);
}

static bool is_judged(const struct process *process)
{
	return !process->probed || process->probes_judged || !process->space;
}

void tracker__judge_probes(struct tracker *tracker, struct process *process)
{
	struct probe_hits hits = process->hits;

	if (!is_judged(process) && has_run(process) &&
	    !probe_hits__add(tracker->opts.half, process->space->id, &hits))
		judge(tracker, process, &hits);
}

void tracker__judge_paused(struct tracker *tracker, struct process *process)
{
	struct probe_hits *hits = &process->hits;

	if (!is_judged(process) && !probe_hits__add(tracker->opts.half, process->space->id, hits) &&
	    hits->entries + hits->returns >= LIVENESS_SURE_HITS)
		judge(tracker, process, hits);
}

void tracker__judge_expected(struct tracker *tracker, struct process *process)
{
	uint32_t undecided = process->expected & ~process->probed;
	int i;

	for (i = 0; tracker->opts.runtimes[i] && process->space; i++)
		if (undecided & process->space->pending & 1U << i)
			tracker__tell_source(
				tracker, process, i, "", "usdt",
				"it has ended before it could be asked whether its probes "
				"fire");
}

void tracker__stop_probes(struct tracker *tracker)
{
	struct process *process;

	tracker__detach_all_probes(tracker);
	for (process = tracker->processes; process; process = process->hh.next)
		tracker__unprobe(tracker, process);
}
