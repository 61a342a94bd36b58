// SPDX-License-Identifier: GPL-2.0-or-later
/* The tracker has one struct process for each profiled process. It exists from the first event that
 * names the process until its last sample is consumed.
 *
 * The problem. Two parties see processes at different times. The kernel half sees forks, execs,
 * exits and samples when they happen, and has a proc_rec for each process in the map `targets`.
 * This half sees the same events later, in the order of the ring, and reads the rest from /proc,
 * which shows the present. Most processes live for some milliseconds, and this half gets only their
 * records. Between a record and its processing the process may have executed another program. It
 * may also have ended, and its PID may belong to another process.
 *
 * The states are in enum process_state. The table of transitions is above process__enter(), which
 * is the only function that writes the state. Its callers are:
 *
 *   tracker.c            adds and removes processes; STARTING
 *   tracker_events.c     forks and execs: NEW; PUBLISHED for a child that shares its parent's space
 *   tracker_found.c      processes that a sample reported: NEW
 *   tracker_mappings.c   reads and publishes mappings: PUBLISHED
 *   tracker_exits.c      ENDING and ENDED
 *   core/record/command.c, by process__hold() and process__let_run(): HELD, and out of it
 *
 * All others read the state. Users of samples, events or names of a process store no pointer to it,
 * but its serial number, which a fork and an exec change.
 *
 * "A runtime is pending" and "a runtime is attached" are no states of a process. They belong to the
 * address space (struct space), which a forked child shares until it maps something else. A runtime
 * that attaches for the parent is thereby attached for the child.
 *
 * Invariants:
 *
 * 1. A PUBLISHED process has a space, and a NEW process has none. In the other states, a space
 * means that mappings are published. tracker__on_end() releases the space.
 * 2. process->program is the number of the executed program in the newest record that was
 * processed. If the kernel half has a later number, tracker__publish() writes nothing. The record
 * of that program is under way, and decides the next publication.
 * 3. An exec ends probes, space, code and mappings of the former program, then changes `serial`.
 * 4. A process that is ENDED stays in the set until tracker__first_spent() returns it: samples that
 * were taken before its end may be in the ring. A new process with the same PID evicts it.
 * 5. Before the tracker frees a process, the caller ends the capture of it (routing.c, leave()):
 * core/capture refers to the struct process of each serial number that it stores.
 * 6. A failure to read one process costs that process its frames and is counted (tracker__unread(),
 * tracker__forbidden()). Only a lack of memory is an error. */
#include "core/target/tracker_state.h"

#include <errno.h>
#include <string.h>
#include <utlist.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/kernel/maps.h"
#include "core/kernel/spaces.h"
#include "core/target/cgroups.h"
#include "core/target/mapping_times.h"
#include "core/target/place.h"
#include "core/target/recent_mappings.h"
#include "core/target/scope.h"
#include "core/target/tracker_runtimes.h"

int tracker__new(const struct tracker_opts *opts, struct tracker **ret)
{
	struct tracker *tracker = calloc(1, sizeof(*tracker));
	int rc;

	if (!tracker)
		return -ENOMEM;
	tracker->opts = *opts;
	tracker->runtimes = (struct runtime_set) { opts->runtimes, opts->enabled, opts->force };
	tracker->targets_fd = kernel_half__map_fd(opts->half, "targets");
	tracker->cgroups = cgroups__new();
	if (tracker->cgroups && opts->scope)
		scope__name_container(opts->scope, tracker->cgroups);
	tracker->recent = recent_mappings__new();
	tracker->jit_sources = jit_sources__new();
	rc = tracker->cgroups && tracker->recent && tracker->jit_sources
		     ? spaces__new(kernel_half__map_fd(opts->half, "mappings"), &tracker->spaces)
		     : -ENOMEM;
	if (rc)
		tracker__free(tracker);
	else
		*ret = tracker;
	return rc;
}

void tracker__put_space(struct tracker *tracker, struct space *space)
{
	int i;

	if (!space || --space->refs)
		return;
	for (i = 0; tracker->opts.runtimes[i]; i++)
		if (space->attached & 1U << i)
			tracker__detach_space(tracker, i, space);
	tracker__detach_context(tracker, space);
	spaces__give(tracker->spaces, space);
}

void tracker__free(struct tracker *tracker)
{
	struct process *process, *next;

	if (!tracker)
		return;
	HASH_ITER (hh, tracker->processes, process, next)
		tracker__forget(tracker, process);
	spaces__free(tracker->spaces);
	cgroups__free(tracker->cgroups);
	recent_mappings__free(tracker->recent);
	jit_sources__free(tracker->jit_sources);
	free(tracker);
}

/* Returns true if the recorded mappings of the process may be stale. With a scope, only sampled
 * processes are tracked. */
static bool is_due(const struct tracker *tracker, const struct process *process, uint64_t now)
{
	if (!tracker->opts.scope || (tracker->lost && process->space) ||
	    (process->retry_ns && now >= process->retry_ns))
		return true;
	return !process->refreshed_ns && now > process->found_ns + NSEC_PER_SEC;
}

#define PARK_NS (10 * NSEC_PER_SEC) /* interval between searches for unused images */

/* Marks the images that the process maps as used. With @with_places, also those of its places,
 * which it may have mapped in the past. */
static void use_images(const struct process *process, bool with_places, uint64_t now)
{
	for (size_t i = 0; i < process->n_mapped; i++)
		if (process->mapped[i].image)
			image__use(process->mapped[i].image, now);
	mapping_times__use_images(process, now);
	if (process->exe)
		image__use(process->exe, now);
	if (with_places)
		places__use_images(process->places, now);
}

/* Frees the tables of images that no process maps. */
static void park_images(struct tracker *tracker, uint64_t now)
{
	const struct process *process;

	if (now < tracker->parked_ns + PARK_NS)
		return;
	tracker->parked_ns = now;
	for (process = tracker->processes; process; process = process->hh.next)
		use_images(process, false, now);
	images__park_unused(tracker->opts.images, now);
}

void tracker__release_images(struct tracker *tracker)
{
	const struct process *process;
	uint64_t now = now_ns();

	for (process = tracker->processes; process; process = process->hh.next)
		use_images(process, true, now);
	images__release_unused(tracker->opts.images, now);
}

int tracker__tick(struct tracker *tracker)
{
	struct process *process;
	uint64_t now = now_ns();
	int ret = 0;

	for (process = tracker->processes; !ret && process; process = process->hh.next) {
		if (process__is_ended(process))
			continue;
		if (is_due(tracker, process, now))
			ret = tracker__refresh(tracker, process);
		tracker__evaluate_probes(tracker, process, false);
	}
	tracker->lost = false;
	if (tracker->opts.scope)
		park_images(tracker, now);
	images__store_read(tracker->opts.images, now);
	spaces__refill(tracker->spaces); /* otherwise when one is needed */
	return ret;
}

void tracker__on_lost(struct tracker *tracker)
{
	for (struct process *process = tracker->processes; process; process = process->hh.next)
		mapping_times__on_lost(process);
	tracker->lost = true;
}

/* A runtime is attached soon after it is ready, and one that never is costs little. */
#define RETRY_NS	  50000000ULL
#define RETRY_SOON_NS	  10000000ULL
#define RETRY_SOON_FOR_NS NSEC_PER_SEC

static bool is_soon(const struct space *space, uint64_t now)
{
	return space->pending && now < space->pending_ns + RETRY_SOON_FOR_NS;
}

int tracker__retry(struct tracker *tracker, uint64_t now)
{
	struct process *process = tracker->any_pending ? tracker->processes : NULL;
	bool soon;
	int ret = 0;

	tracker->any_pending = false;
	tracker->any_soon = false;
	for (; !ret && process; process = process->hh.next) {
		if (process__is_ended(process) || !process->space ||
		    !(process->space->pending || process->space->awaits_context))
			continue;
		soon = is_soon(process->space, now);
		tracker->any_pending = true;
		tracker->any_soon |= soon;
		if (now >= process->refreshed_ns + (soon ? RETRY_SOON_NS : RETRY_NS))
			ret = tracker__refresh(tracker, process);
	}
	return ret;
}

bool tracker__expects_runtime(const struct tracker *tracker, uint64_t now)
{
	return now < tracker->expects_until_ns;
}

bool tracker__retries_soon(const struct tracker *tracker)
{
	return tracker->any_soon;
}

struct process *tracker__find(const struct tracker *tracker, uint32_t pid)
{
	struct process *process;

	HASH_FIND(hh, tracker->processes, &pid, sizeof(pid), process);
	return process;
}

struct process *tracker__first_requested(const struct tracker *tracker)
{
	return tracker->requested;
}

struct process *tracker__first(const struct tracker *tracker)
{
	return tracker->processes;
}

uint64_t tracker__unread(const struct tracker *tracker)
{
	return tracker->unread;
}

const struct tracker_forbidden *tracker__forbidden(const struct tracker *tracker)
{
	return &tracker->forbidden;
}

void tracker__join(struct tracker *tracker)
{
	struct process *process;

	for (process = tracker->processes; process; process = process->hh.next)
		process->is_joined |= !process__is_ended(process);
}

uint32_t tracker__unprobed(const struct tracker *tracker)
{
	return tracker->n_unprobed;
}

uint32_t tracker__last_serial(const struct tracker *tracker)
{
	return tracker->last_serial;
}

uint64_t tracker__changes(const struct tracker *tracker)
{
	return (uint64_t)tracker->last_serial + tracker->n_ended;
}

size_t tracker__count(const struct tracker *tracker)
{
	return HASH_COUNT(tracker->processes);
}

size_t tracker__count_living(const struct tracker *tracker)
{
	const struct process *process;
	size_t n = 0;

	for (process = tracker->processes; process; process = process->hh.next)
		n += !process__is_ended(process);
	return n;
}

unsigned tracker__count_requested(const struct tracker *tracker)
{
	const struct process *process;
	unsigned n = 0;

	for (process = tracker->requested; process; process = process->next_requested)
		n += !process__is_ended(process);
	return n;
}

/* Publishes nothing if the process has executed another program meanwhile: the record of that
 * program is on its way. */
int tracker__publish(struct tracker *tracker, const struct process *process)
{
	struct proc_rec rec = { .program = process->program };

	if (!map__lookup(tracker->targets_fd, &process->pid, &rec) &&
	    rec.program != process->program)
		return 0;
	return tracker__publish_over(tracker, process, &rec);
}

/* Returns true if children of the process are targets from their birth. With a scope, children are
 * found by their own first samples. They are followed only if they need state of the parent: a
 * runtime's state, or names of code that it generated. */
static bool is_followed(const struct tracker *tracker, const struct process *process)
{
	if (tracker->opts.alone || !tracker->opts.scope)
		return !tracker->opts.alone;
	for (size_t i = 0; i < process->n_mapped; i++)
		if (!process->mapped[i].image)
			return true;
	return process->space && process->space->walkers | process->space->attached;
}

int tracker__publish_over(struct tracker *tracker, const struct process *process,
			  const struct proc_rec *before)
{
	struct proc_rec rec = { .flags = (is_followed(tracker, process) ? PROC_FOLLOW : 0) |
					 (process->state == PROCESS_STARTING ? PROC_STARTING : 0),
				.program = process->program,
				.mm = before->program == process->program ? before->mm : 0 };

	if (process->requested)
		rec.flags |= PROC_REQUESTED;
	if (process->probed | process->pre_attached || tracker->opts.urgent)
		rec.flags |= PROC_URGENT;
	if (process->space) {
		rec.space = process->space->id;
		rec.walkers = process->space->walkers;
	}
	return map__update(tracker->targets_fd, &process->pid, &rec);
}

void tracker__count_unread(struct tracker *tracker, struct process *process)
{
	tracker->unread += !process->unread;
	process->unread = true;
}

void tracker__forget(struct tracker *tracker, struct process *process)
{
	struct process **at = &tracker->requested;

	while (*at && *at != process)
		at = &(*at)->next_requested;
	if (*at)
		*at = process->next_requested;
	if (process__is_ended(process))
		DL_DELETE2(tracker->ended, process, prev_ended, next_ended);
	tracker__unprobe(tracker, process);
	tracker__put_space(tracker, process->space);
	close_fd(&process->pidfd);
	cgroups__give(tracker->cgroups, process->cgroup);
	HASH_DEL(tracker->processes, process);
	process__forget_code(process);
	process__clear_mapped(process);
	quota__close(process->account);
	free(process);
}

void tracker__set_cgroup(struct tracker *tracker, struct process *process, uint64_t id)
{
	struct cgroup *before = process->cgroup;

	if (before && before->id && before->id == id)
		return;
	process->cgroup = cgroups__take(tracker->cgroups, id, process->pid);
	cgroups__give(tracker->cgroups, before);
}

void tracker__share_cgroup(struct process *child, const struct process *parent)
{
	child->cgroup = parent ? parent->cgroup : NULL;
	if (child->cgroup)
		child->cgroup->refs++;
}

int tracker__new_process(struct tracker *tracker, uint32_t pid, const struct procfs_info *info,
			 struct process **ret)
{
	struct process *process = tracker__find(tracker, pid);

	if (process) /* the PID of an ended process was reused */
		tracker__forget(tracker, process);
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	process->pid = pid;
	process->serial = ++tracker->last_serial;
	process->runtimes = &tracker->runtimes;
	process->jit_sources = tracker->jit_sources;
	process->info = *info;
	process->pidfd = -1;
	process->found_ns = now_ns();
	HASH_ADD(hh, tracker->processes, pid, sizeof(pid), process);
	*ret = process;
	return 0;
}

int tracker__add(struct tracker *tracker, uint32_t pid, bool starting, struct process **ret,
		 struct err *err)
{
	struct process *process;
	struct procfs_info info;
	int rc = procfs__target(pid, &info, err);

	if (rc)
		return rc;
	process = tracker__find(tracker, info.pid); /* the user may name a process twice */
	if (!process || process__is_ended(process))
		rc = tracker__new_process(tracker, info.pid, &info, &process);
	if (rc)
		return err__set(err, rc, "out of memory");
	if (!process->requested) {
		process->requested = true;
		process->next_requested = tracker->requested;
		tracker->requested = process;
	}
	if (starting)
		process__enter(process, PROCESS_STARTING);
	tracker__set_cgroup(tracker, process, 0);
	rc = tracker__publish(tracker, process);
	if (rc)
		return err__set(err, rc, "cannot follow PID %u: %s", info.pid, strerror(-rc));
	*ret = process;
	return 0;
}
