// SPDX-License-Identifier: GPL-2.0-or-later
/* Probes of events in programs and libraries. If the targets are individual processes, probes are
 * only in their memory. If the targets are a cgroup, a name or the whole system, probes are in all
 * processes that map the file.
 *
 * The kernel has no probes that a child inherits. A forked child gets its own probes when braid
 * reads about it in the ring, about 0.1 ms later. Its calls before that are not seen, and the
 * summary reports this. */
#include "core/events/event.h"

#include <errno.h>
#include <stdio.h>

#include "core/base/util.h"
#include "core/target/images.h"
#include "core/target/procfs.h"
#include "core/target/tracker.h"
#include "probes/probe_set.h"

int event__open_probes(struct event *event, const struct event_place *place, struct err *err)
{
	if (event->probes)
		return 0;
	event->probes = probe_set__new(place->everywhere);
	if (!event->probes)
		return err__set(err, -ENOMEM, "out of memory");
	return event__join_probes(event, place, err);
}

struct attaching {
	struct event *event;
	const struct event_place *place;
	event_file_fn attach;
	struct err *err;
};

static int on_file(void *ctx, const struct image *image, const struct elf_file *file)
{
	const struct attaching *of = ctx;

	return of->attach(of->event, of->place, image, file, of->err);
}

int event__attach_new_files(struct event *event, const struct event_place *place, uint64_t *seen,
			    event_file_fn attach, struct err *err)
{
	struct attaching attaching = { event, place, attach, err };

	return images__each_new_file(place->images, seen, on_file, &attaching);
}

void event__put_late(struct event *event)
{
	event->late[0] = '\0';
	if (!event->n_late)
		return;
	snprintf(event->late, sizeof(event->late),
		 "%u process%s started later had %s probes up to %.1f ms after the start: earlier "
		 "calls are not seen (-a and --cgroup see them)",
		 event->n_late, event->n_late > 1 ? "es that" : " that",
		 event->n_late > 1 ? "their" : "its", event->late_ns / 1e6);
}

/* Records that a child of a target ran without probes since its start. */
static void note_join(struct event *event, const struct process *process)
{
	uint64_t now = now_ns();

	if (!event->attached || !event->by_process || process->is_joined ||
	    process->state == PROCESS_STARTING || process->state == PROCESS_HELD ||
	    now <= process->found_ns)
		return;
	event->n_late++;
	event->late_ns = max_of(event->late_ns, now - process->found_ns);
	event__put_late(event);
}

static void leave_ended(struct event *event, const struct event_place *place)
{
	size_t n = 0;
	pid_t pid;

	while ((pid = probe_set__member(event->probes, n))) {
		const struct process *process = pid > 0 ? tracker__find(place->tracker, pid) : NULL;

		if (pid > 0 && (!process || process__is_ended(process)))
			probe_set__leave(event->probes, pid);
		else
			n++;
	}
}

bool event__is_relieved(const struct event *event, const struct process *process)
{
	return process->relieved_serial > event->joined_serial;
}

int event__join_probes(struct event *event, const struct event_place *place, struct err *err)
{
	uint64_t changes = tracker__changes(place->tracker);
	struct process *process;
	int ret = 0;

	event->by_process = event->probes && !probe_set__is_everywhere(event->probes);
	if (!event->by_process || event->joined_changes == changes)
		return 0;
	event->joined_changes = changes;
	leave_ended(event, place);
	for (process = tracker__first(place->tracker); !ret && process;
	     process = process->hh.next) {
		if (!process__is_ended(process) && event__is_relieved(event, process))
			probe_set__leave(event->probes, process->pid);
		if (process__is_ended(process) || probe_set__has(event->probes, process->pid))
			continue;
		ret = probe_set__join(event->probes, process->pid, err);
		event->by_process = !probe_set__is_everywhere(event->probes);
		note_join(event, process);
	}
	event->joined_serial = tracker__last_serial(place->tracker);
	return ret;
}

int event__check_probes(struct event *event, const struct event_place *place, struct err *err)
{
	pid_t pid;
	int ret = 0;

	(void)place;
	for (size_t n = 0; !ret && event->probes && (pid = probe_set__member(event->probes, n));
	     n++)
		if (pid > 0 && procfs__thread_state(pid) == 'Z')
			ret = probe_set__go_everywhere(event->probes, err);
	return ret;
}
