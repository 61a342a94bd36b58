// SPDX-License-Identifier: GPL-2.0-or-later
/* Threads that wait when the recording begins, and threads that still wait when it ends. The kernel
 * half samples a wait at its end, but a deadlock never ends. So at the beginning the current waits
 * are entered into the kernel half's map. At the end, user space samples the threads whose entries
 * are left: a waiting thread has its registers in the kernel, and its stack in memory that this
 * process can read. */
#include "core/record/parts.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/kernel/host_half.h"
#include "core/kernel/waiting.h"

static bool is_running(uint32_t tid)
{
	char state = procfs__thread_state(tid);

	return !state || state == 'R';
}

uint32_t session__waiting_state(uint32_t tid)
{
	char state = procfs__thread_state(tid);

	return state == 'T' || state == 't' ? STATE_STOPPED : STATE_BLOCKED;
}

static int note_threads(const struct session *session, uint32_t pid)
{
	struct dirent *entry;
	char path[32];
	DIR *dir;
	int ret = 0;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	dir = opendir(path);
	while (dir && !ret && (entry = readdir(dir))) {
		uint32_t tid = strtoul(entry->d_name, NULL, 10);

		if (tid && !is_running(tid)) { /* the kernel half reports when a running thread
						  leaves the CPU */
			const struct waiting_start start = { session->start_ns,
							     procfs__thread_exec_ns(tid),
							     session__waiting_state(tid) };

			ret = waiting__put(session->half, tid, &start);
		}
	}
	if (dir)
		closedir(dir);
	return ret == -E2BIG ? 0 : ret;
}

int session__prepare_waiting(struct session *session, struct err *err)
{
	int ret;

	if (!event_list__waiting(&session->opts.events) || session->opts.command)
		return 0;
	ret = waiting__note_rseq(session->half, err);
	return ret ? ret : session__follow(session, err);
}

int session__note_waiting(struct session *session, struct err *err)
{
	const struct process *process;
	int ret = 0;

	if (!event_list__waiting(&session->opts.events) || session->opts.command)
		return 0;
	for (process = tracker__first(session->tracker); !ret && process;
	     process = process->hh.next)
		if (!process__is_ended(process))
			ret = note_threads(session, process->pid);
	return ret ? err__set(err, ret, "cannot list the waiting threads: %s", strerror(-ret)) : 0;
}

static void drop(struct pending_record ***end, struct pending_record **from)
{
	struct pending_record *pending;

	while ((pending = *from)) {
		*from = pending->next;
		free(pending);
	}
	*end = from;
}

/* Returns the sample's facts about the wait up to `until_ns`. */
static struct waiting_sample describe(const struct session *session, uint32_t event,
				      const struct waiting_thread *thread,
				      const struct waiting_rec *rec, uint64_t until_ns)
{
	struct waiting_sample sample = { .event = event,
					 .time_ns = until_ns,
					 .value = until_ns - max_of(rec->off_ns, session->start_ns),
					 .link = rec->link,
					 .peer = rec->peer };

	sample.condition.state = rec->state;
	sample.condition.syscall =
		thread->syscall >= 0 && thread->syscall < INT16_MAX ? thread->syscall : NO_SYSCALL;
	if (sample.condition.syscall == SYSCALL_FUTEX)
		sample.object = thread->regs[UNWIND_REG_RDI];
	return sample;
}

/* Reads the thread's entry. Returns true if it is about a wait that counts, up to `until_ns`. */
static bool find_note(const struct session *session, const struct waiting_thread *thread,
		      uint32_t event, uint64_t until_ns, struct waiting_rec *ret)
{
	const struct event_spec *spec = &session->opts.events.list[event - 1];

	if (!waiting__get(session->half, thread->tid, ret) || ret->off_ns >= until_ns ||
	    until_ns - max_of(ret->off_ns, session->start_ns) < spec->minimum)
		return false;
	ret->link = ret->peer = 0; /* the waking thread belongs to the end of the wait */
	/* The entry is invalid if the thread was entered at the beginning just when it began to
	 * run, and has not stopped since. */
	return ret->off_ns != session->start_ns || !thread->runs || !is_running(thread->tid);
}

/* Samples a waiting thread. Its stack is valid if the thread has not run meanwhile: then its entry
 * is still in the map. The entry is removed, so that the wait is not sampled twice. If the entry is
 * gone, the kernel half has sampled the wait. A wait that does not count is no error. */
static int sample_thread(struct session *session, struct host_half *host,
			 const struct waiting_thread *thread, uint32_t event,
			 struct pending_record ***end)
{
	struct pending_record **from = *end;
	struct waiting_sample sample;
	struct waiting_rec rec, now;
	struct process *process;
	int ret;

	if (!find_note(session, thread, event, session->end_ns, &rec))
		return 0;
	ret = session__find_process(session, thread->tgid, &process);
	if (ret || !process)
		return ret;
	sample = describe(session, event, thread, &rec, session->end_ns);
	sample.time_ns--;
	ret = host_half__sample(host, process->space, thread, &sample, waiting_sample__append, end);
	if (ret)
		return ret;
	if (!waiting__take(session->half, thread->tid, &now) || now.off_ns != rec.off_ns)
		drop(end, from);
	return 0;
}

int session__sample_waiting(struct session *session, struct err *err)
{
	uint32_t event = event_list__waiting(&session->opts.events);
	struct pending_record **end = &session->waiting.samples;
	struct waiting_thread *threads = NULL;
	struct host_half *host = NULL;
	size_t n = 0;
	int ret;

	if (!event)
		return 0;
	if (session->opts
		    .live) /* the waits in the profile are replaced by the samples that follow */
		live_profile__look(session->opts.live);
	ret = waiting__list(session->half, &threads, &n, err);
	if (ret)
		return ret;
	while (*end)
		end = &(*end)->next;
	ret = host_half__new(session->half, session->code.arena, &host);
	for (size_t i = 0; !ret && i < n; i++)
		ret = sample_thread(session, host, &threads[i], event, &end);
	host_half__free(host);
	free(threads);
	return ret ? err__set(err, ret, "cannot sample the waiting threads: %s", strerror(-ret))
		   : 0;
}

int session__record_waiting(struct session *session, struct err *err)
{
	struct pending_record *pending;
	int ret = 0;

	while ((pending = session->waiting.samples)) {
		session->waiting.samples = pending->next;
		if (!ret && err)
			ret = routing__record(&session->routing, pending->data, pending->size, err);
		free(pending);
	}
	return ret;
}

/* --- while it goes on --- */

struct look {
	struct session *session;
	struct host_half *host; /* NULL: not needed yet */
	uint32_t event;
	uint64_t now_ns;
};

/* Makes the records of a new wait. `ret_over`: the wait has ended meanwhile. */
static int sample_under_way(struct look *look, const struct waiting_thread *thread,
			    const struct waiting_rec *rec, const struct process *process,
			    struct pending_record **ret_first, bool *ret_over)
{
	struct session *session = look->session;
	struct waiting_sample sample = describe(session, look->event, thread, rec, look->now_ns);
	struct pending_record **end = ret_first;
	struct waiting_rec now;
	int ret = 0;

	sample.flags = SAMPLE_UNDER_WAY;
	sample.link = sample.peer = 0;
	if (!look->host)
		ret = host_half__new(session->half, session->code.arena, &look->host);
	if (!ret)
		ret = host_half__sample(look->host, process->space, thread, &sample,
					waiting_sample__append, &end);
	*ret_over = !waiting__get(session->half, thread->tid, &now) || now.off_ns != rec->off_ns;
	return ret;
}

static int look_at(struct look *look, const struct waiting_thread *thread, struct err *err)
{
	struct session *session = look->session;
	const struct process *process = tracker__find(session->tracker, thread->tgid);
	struct pending_record *pending = NULL, *next;
	struct waiting_rec rec;
	bool over;
	int ret;

	if (!process || !find_note(session, thread, look->event, look->now_ns, &rec))
		return 0;
	ret = live_profile__waits(session->opts.live, thread->tid,
				  max_of(rec.off_ns, session->start_ns), look->now_ns);
	if (ret)
		return min_of(ret, 0);
	ret = sample_under_way(look, thread, &rec, process, &pending, &over);
	for (; pending; pending = next) {
		next = pending->next;
		/* Each name is sent once, so names are routed even if the sample is dropped. */
		if (!ret && !(over && pending_record__type(pending) == REC_SAMPLE))
			ret = routing__record(&session->routing, pending->data, pending->size, err);
		free(pending);
	}
	return ret;
}

int session__look_at_waits(struct session *session, struct err *err)
{
	struct look look = { .session = session,
			     .event = event_list__waiting(&session->opts.events) };
	struct waiting_thread *threads = NULL;
	size_t n = 0;
	int ret;

	if (!look.event)
		return 0;
	live_profile__look(session->opts.live);
	ret = session->waiting.lister
		      ? 0
		      : waiting_lister__new(session->half, &session->waiting.lister, err);
	if (!ret)
		ret = waiting_lister__list(session->waiting.lister, &threads, &n, err);
	if (ret)
		return ret;
	look.now_ns = now_ns();
	for (size_t i = 0; !ret && i < n; i++)
		ret = look_at(&look, &threads[i], err);
	host_half__free(look.host);
	free(threads);
	return ret && !err->text[0]
		       ? err__set(err, ret, "cannot sample the waiting threads: %s", strerror(-ret))
		       : ret;
}
