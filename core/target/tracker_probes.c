// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/tracker_runtimes.h"
#include "core/target/tracker_state.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "bpf/shadow.h"
#include "core/base/util.h"
#include "core/kernel/probe_hits.h"
#include "core/kernel/spaces.h"
#include "core/target/liveness.h"

/* Probes of processes' runtimes: attaches them, evaluates them by their hits, and detaches dead
 * ones. If they cost too much, all are detached. */

uint32_t tracker__traps(const struct tracker *tracker)
{
	return tracker->traps;
}

bool tracker__has_probes(const struct tracker *tracker)
{
	const struct process *process;

	for (process = tracker->processes; process; process = process->hh.next)
		if (process->probed)
			return true;
	return false;
}

const char *tracker__version(const struct process *process, int i)
{
	const struct mapped *mapped = tracker__find_runtime(process, i);

	return mapped ? mapped->image->runtimes[i].verdict.version : "";
}

static void on_probed(struct process *process)
{
	struct procfs_info info = {};

	process->probes_evaluated =
		process->probes_evaluated || procfs__info(process->pid, &info, NULL);
	process->probed_ticks = info.cpu_ticks;
	process->space->walkers |= 1U << WALKER_SHADOW;
}

void tracker__probe(struct tracker *tracker, struct process *process, int i,
		    const struct mapped *mapped, const char *no_walk)
{
	const struct runtime *runtime = tracker->opts.runtimes[i];
	const struct runtime_verdict *verdict = &mapped->image->runtimes[i].verdict;
	struct runtime_target target = process__runtime_target(process, i, mapped);
	struct runtime_probing probing = {};
	struct err err = {};

	if (!runtime->probes)
		err__set(&err, -ENOTSUP, "%s has no probes", runtime->name);
	else if (!kernel_half__load_probes(tracker->opts.half, &err) &&
		 !runtime->probes->probe(tracker->opts.sessions[i], &target, tracker->opts.source,
					 &probing, &err))
		process->probed |= 1U << i;
	tracker->traps |= probing.traps;
	if (process->probed & 1U << i) {
		on_probed(process);
		tracker__report_source(tracker, process, i, verdict->version, probing.source,
				       probing.note);
		return;
	}
	if (tracker->opts.source == RUNTIME_SOURCE_AUTO && no_walk[0])
		err__set(&err, -ENOTSUP, "%s", no_walk); /* the reason of the better source */
	tracker__report_source(tracker, process, i, verdict->version, "none", err.text);
}

void tracker__probe_child(struct tracker *tracker, struct process *child,
			  const struct process *parent)
{
	uint32_t requested = parent->probed;
	const struct mapped *mapped;
	int i;

	if (!requested || !tracker__lives(tracker, child))
		return; /* it lived for less time than the attachment takes */
	for (i = 0; tracker->opts.runtimes[i]; i++) {
		mapped = requested & 1U << i ? tracker__find_runtime(child, i) : NULL;
		if (mapped)
			tracker__probe(tracker, child, i, mapped,
				       mapped->image->runtimes[i].verdict.reason);
	}
}

void tracker__unprobe(struct tracker *tracker, struct process *process)
{
	int i;

	for (i = 0; tracker->opts.runtimes[i]; i++)
		if ((process->probed | process->pre_attached) & 1U << i)
			tracker->opts.runtimes[i]->probes->unprobe(tracker->opts.sessions[i],
								   process->pid);
	process->probed = process->pre_attached = 0;
	process->probes_evaluated = false;
}

static void report_dead(struct tracker *tracker, struct process *process,
			const struct probe_hits *hits)
{
	bool silent = !(hits->entries + hits->returns);
	bool requested = tracker->opts.source != RUNTIME_SOURCE_AUTO;
	char reason[RUNTIME_REASON_BYTES];
	int i;

	if (silent)
		snprintf(reason, sizeof(reason),
			 "its probes did not fire in a second of CPU time: it is in one long call, "
			 "or they are dead (`braid probes -p PID` measures them and shows the "
			 "remedy)");
	else
		snprintf(reason, sizeof(reason),
			 "its probes are dead: those of entries fired %" PRIu64
			 " times, those of returns %" PRIu64
			 " (`braid probes -p PID` shows the remedy)",
			 hits->entries, hits->returns);
	for (i = 0; tracker->opts.runtimes[i]; i++)
		if (process->probed & 1U << i)
			tracker__report_source(tracker, process, i, tracker__version(process, i),
					       requested && silent ? "silent" : "none", reason);
}

static bool has_run(const struct process *process)
{
	struct procfs_info info;

	return !procfs__info(process->pid, &info, NULL) &&
	       info.cpu_ticks >= process->probed_ticks + sysconf(_SC_CLK_TCK);
}

/* Evaluates hits that lie between two readings. The counts of sites are read one after the other,
 * and the target runs meanwhile. Counts only grow, so each count of the second reading is at least
 * its value at the end of the first. The result must be the same for all counts between the two. */
static enum liveness evaluate_between(const struct probe_hits *before,
				      const struct probe_hits *after)
{
	enum liveness liveness = liveness__of(before->entries, after->returns);

	return liveness == liveness__of(after->entries, before->returns) ? liveness
									 : LIVENESS_UNKNOWN;
}

/* Evaluates the probes of a process. Probes without hits stay if the user requested them, as the
 * process may be in one long call. Probes that fire at one side only are detached. */
static void evaluate(struct tracker *tracker, struct process *process,
		     const struct probe_hits *before, const struct probe_hits *after)
{
	enum liveness liveness = evaluate_between(before, after);

	if (liveness == LIVENESS_UNKNOWN && after->entries + after->returns)
		return; /* later hits may decide */
	process->probes_evaluated = true;
	if (liveness == LIVENESS_LIVES)
		return;
	report_dead(tracker, process, after);
	if (liveness == LIVENESS_UNKNOWN && tracker->opts.source != RUNTIME_SOURCE_AUTO)
		return;
	tracker__unprobe(tracker, process);
	process->space->walkers &= ~(1U << WALKER_SHADOW);
	tracker__publish(tracker, process);
}

static bool is_evaluated(const struct process *process)
{
	return !process->probed || process->probes_evaluated || !process->space;
}

void tracker__evaluate_probes(struct tracker *tracker, struct process *process, bool now)
{
	const struct kernel_half *half = tracker->opts.half;
	struct probe_hits before = {}, after = {};

	if (is_evaluated(process) || (!now && !has_run(process)) ||
	    probe_hits__add(half, process->space->id, &before) ||
	    probe_hits__add(half, process->space->id, &after))
		return;
	if (!now || before.entries + before.returns >= LIVENESS_SURE_HITS)
		evaluate(tracker, process, &before, &after);
}

void tracker__evaluate_pre_attached(struct tracker *tracker, struct process *process)
{
	uint32_t undecided = process->pre_attached & ~process->probed;
	int i;

	for (i = 0; tracker->opts.runtimes[i] && process->space; i++)
		if (undecided & process->space->pending & 1U << i)
			tracker__report_source(
				tracker, process, i, "", "usdt",
				"it ended before braid could check whether its probes fire");
}

/* Selects the source of frames without probes: a walk, if this version can be walked. */
static void choose_without(struct tracker *tracker, struct process *process)
{
	struct space *space = process->space;
	int i;

	for (i = 0; tracker->opts.runtimes[i]; i++) {
		const struct runtime *runtime = tracker->opts.runtimes[i];
		bool walks = space->attached & 1U << i && runtime->walker;

		if (!(process->probed & 1U << i))
			continue;
		if (walks)
			space->walkers |= 1U << runtime->walker->slot;
		tracker__report_source(tracker, process, i, tracker__version(process, i),
				       walks ? "walk" : "none", tracker->why);
	}
	space->walkers &= ~(1U << WALKER_SHADOW);
	process->probed = process->pre_attached = 0;
}

void tracker__evaluate_hits(struct tracker *tracker)
{
	struct process *process;

	for (process = tracker->processes; process; process = process->hh.next)
		if (!process__is_ended(process) && process->space)
			tracker__evaluate_probes(tracker, process, true);
}

/* Detaches all probes. First stops the use of shadow stacks by samples, as they are wrong as soon
 * as a probe is gone. */
void tracker__give_up_probes(struct tracker *tracker, const char *why)
{
	struct process *process;

	assert(!tracker->given_up && tracker->opts.source != RUNTIME_SOURCE_CALLS);
	tracker__evaluate_hits(tracker);
	snprintf(tracker->why, sizeof(tracker->why), "%s", why);
	tracker->given_up = true;
	for (process = tracker->processes; process; process = process->hh.next)
		if (!process__is_ended(process) && process->space)
			choose_without(tracker, process);
	/* Includes processes that have no probes themselves, but share their parent's address
	 * space. */
	for (process = tracker->processes; process; process = process->hh.next)
		if (!process__is_ended(process) && process->space)
			tracker__publish(tracker, process);
	kernel_half__end_probes(tracker->opts.half);
	tracker__stop_probes(tracker);
}

void tracker__stop_probes(struct tracker *tracker)
{
	struct process *process;
	int i;

	/* All at once: the kernel waits for each single detach. */
	for (i = 0; tracker->opts.runtimes[i]; i++)
		if (tracker->opts.sessions[i] && tracker->opts.runtimes[i]->probes)
			tracker->opts.runtimes[i]->probes->unprobe_all(tracker->opts.sessions[i]);
	for (process = tracker->processes; process; process = process->hh.next)
		tracker__unprobe(tracker, process);
}
