// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/tracker_private.h"

#include <stdio.h>

#include "core/spaces.h"

/* Probes that cost too much: they are taken away, for good where there is something else to go on
 * by, else for a while. */

uint32_t tracker__traps(const struct tracker *tracker)
{
	return tracker->traps;
}

bool tracker__has_probes(const struct tracker *tracker)
{
	const struct process *process;

	for (process = tracker->processes; process; process = process->hh.next)
		if (process->probed | process->paused)
			return true;
	return false;
}

const char *tracker__version(const struct process *process, int i)
{
	const struct mapped *mapped = tracker__find_runtime(process, i);

	return mapped ? mapped->image->runtimes[i].verdict.version : "";
}

static void tell_paused(struct tracker *tracker, struct process *process, int i)
{
	char reason[RUNTIME_REASON_BYTES + 64];

	if (process->told_paused & 1U << i)
		return;
	process->told_paused |= 1U << i;
	snprintf(reason, sizeof(reason), "%s: in short windows from now on", tracker->why);
	tracker__tell_source(tracker, process, i, tracker__version(process, i), "windows", reason);
}

/* What the next samples' frames come from. */
static void choose_without(struct tracker *tracker, struct process *process)
{
	struct space *space = process->space;
	int i;

	for (i = 0; tracker->opts.runtimes[i]; i++) {
		const struct runtime *runtime = tracker->opts.runtimes[i];

		if (!(process->probed & 1U << i))
			continue;
		if (tracker->walk_instead && space->attached & 1U << i && runtime->walker >= 0) {
			space->walkers |= 1U << runtime->walker;
			tracker__tell_source(tracker, process, i, tracker__version(process, i),
					     "walk", tracker->why);
		} else {
			process->paused |= 1U << i;
			tell_paused(tracker, process, i);
		}
	}
	space->walkers &= ~(1U << WALKER_SHADOW);
}

/* Samples stop looking at shadow stacks first: these are wrong as soon as a probe is gone. */
void tracker__pause_probes(struct tracker *tracker, const char *why)
{
	struct process *process;

	snprintf(tracker->why, sizeof(tracker->why), "%s", why);
	tracker->paused = true;
	tracker->walk_instead = tracker->opts.source != RUNTIME_SOURCE_CALLS;
	for (process = tracker->processes; process; process = process->hh.next) {
		if (process->gone || !process->space)
			continue;
		tracker__judge_paused(tracker, process);
		choose_without(tracker, process);
	}
	/* Also those that are not probed themselves, but share their parent's address space. */
	for (process = tracker->processes; process; process = process->hh.next)
		if (!process->gone && process->space)
			tracker__publish(tracker, process);
	tracker__detach_all_probes(tracker);
}

int tracker__resume_probes(struct tracker *tracker)
{
	struct process *process;
	int code = 0, i;

	tracker->paused = false;
	for (process = tracker->processes; !code && process; process = process->hh.next) {
		uint32_t wanted = process->paused;

		process->paused = 0;
		if (!wanted || process->gone || !process->space)
			continue;
		for (i = 0; tracker->opts.runtimes[i]; i++) {
			const struct mapped *mapped = tracker__find_runtime(process, i);

			if (wanted & 1U << i && mapped)
				tracker__probe(tracker, process, i, mapped,
					       !(process->told_probed & 1U << i));
		}
		code = tracker__publish(tracker, process);
	}
	return code;
}
