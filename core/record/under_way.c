// SPDX-License-Identifier: GPL-2.0-or-later
/* System calls and waits for locks that do not end within the recording. User space samples their
 * threads while the kernel half is still attached. A sample counts if the call is still in progress
 * when its entry is removed from the kernel half's map. Otherwise the kernel half samples the call
 * at its end. A call has only one entry, so the thread was in the call all the time in between. */
#include "core/record/parts.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/futex.h"
#include "core/base/memory.h"
#include "core/base/util.h"
#include "core/kernel/host_half.h"
#include "core/kernel/waiting.h"

/* One sample, with its records. */
struct call {
	uint32_t tid;
	uint64_t since_ns;
	enum { CALL_SYSCALL, CALL_LOCK, CALL_FUNCTION } kind;
	struct pending_record *records;
};

struct under_way {
	struct session *session;
	struct host_half *host;
	struct waiting_thread *threads;
	struct call_rec *recs; /* by thread */
	struct call *list;
	size_t n_threads, n_recs, n, cap;
	int events_fd; /* map from system calls to events; -1: no such event */
	uint32_t lock_event, function_event; /* 0: none */
};

int waiting_sample__append(void *ctx, const void *data, size_t size)
{
	struct pending_record ***end = ctx, *pending = malloc(sizeof(*pending) + size);

	if (!pending)
		return -ENOMEM;
	pending->next = NULL;
	pending->size = size;
	memcpy(pending->data, data, size);
	**end = pending;
	*end = &pending->next;
	return 0;
}

uint32_t pending_record__type(const struct pending_record *pending)
{
	uint32_t type;

	memcpy(&type, pending->data, sizeof(type));
	return type;
}

static int by_tid(const void *a, const void *b)
{
	uint32_t one = ((const struct call_rec *)a)->tid, other = ((const struct call_rec *)b)->tid;

	return one < other ? -1 : one > other;
}

static const struct call_rec *find(const struct call_rec *list, size_t n, uint32_t tid)
{
	const struct call_rec key = { .tid = tid };

	return n ? bsearch(&key, list, n, sizeof(*list), by_tid) : NULL;
}

static int list_calls(struct under_way *under_way, bool taken, struct err *err)
{
	int ret;

	free(under_way->recs);
	under_way->recs = NULL;
	ret = waiting__calls(under_way->session->half, taken, &under_way->recs, &under_way->n_recs,
			     err);
	if (!ret && under_way->n_recs)
		qsort(under_way->recs, under_way->n_recs, sizeof(*under_way->recs), by_tid);
	return ret;
}

/* Returns the lock's owner, if the lock contains it; 0: unknown. */
static uint32_t owner_of(const struct waiting_thread *thread)
{
	struct glibc_mutex mutex;
	struct memory *memory = NULL;
	uint32_t owner = 0;

	if (memory__of_process(thread->tgid, &memory))
		return 0;
	if (!memory__read(memory, thread->regs[UNWIND_REG_RDI], &mutex, sizeof(mutex)))
		owner = futex__owner(&mutex, thread->regs[UNWIND_REG_RSI] & FUTEX_COMMANDS,
				     thread->regs[UNWIND_REG_RDX]);
	memory__free(memory);
	return owner;
}

/* Returns the call's start within the recording; 0: it is outside, or shorter than the event's
 * minimum. */
static uint64_t clip(const struct session *session, uint64_t since_ns, uint32_t event)
{
	uint64_t from_ns = max_of(since_ns, session->start_ns);

	return since_ns && from_ns < session->end_ns &&
			       session->end_ns - from_ns >=
				       session->opts.events.list[event - 1].minimum
		       ? from_ns
		       : 0;
}

static int add(struct under_way *under_way, const struct waiting_thread *thread,
	       struct waiting_sample *sample, uint64_t since_ns, int kind)
{
	struct session *session = under_way->session;
	uint64_t from_ns = clip(session, since_ns, sample->event);
	struct pending_record **end;
	struct process *process;
	struct call *call;
	int ret;

	if (!from_ns)
		return 0;
	ret = session__find_process(session, thread->tgid, &process);
	if (ret || !process)
		return ret;
	if (array__reserve(&under_way->list, &under_way->cap, under_way->n + 1,
			   sizeof(*under_way->list)))
		return -ENOMEM;
	call = &under_way->list[under_way->n++];
	*call = (struct call) { .tid = thread->tid, .since_ns = since_ns, .kind = kind };
	end = &call->records;
	sample->time_ns = session->end_ns - 1;
	sample->value = session->end_ns - from_ns;
	sample->condition = (struct rec_condition) { .state = session__waiting_state(thread->tid),
						     .syscall = thread->syscall };
	if (thread->syscall == SYSCALL_FUTEX && !sample->object)
		sample->object = thread->regs[UNWIND_REG_RDI];
	return host_half__sample(under_way->host, process->space, thread, sample,
				 waiting_sample__append, &end);
}

static int add_lock(struct under_way *under_way, const struct waiting_thread *thread,
		    const struct call_rec *rec)
{
	uint64_t command = thread->regs[UNWIND_REG_RSI] & FUTEX_COMMANDS;
	struct waiting_sample sample = { .event = under_way->lock_event,
					 .link = rec->link,
					 .peer = rec->peer };

	if (!under_way->lock_event || thread->syscall != SYSCALL_FUTEX || command >= 32 ||
	    !(COMMANDS_WAIT & 1U << command))
		return 0;
	if (!sample.peer)
		sample.peer = owner_of(thread);
	return add(under_way, thread, &sample, rec->lock_ns, CALL_LOCK);
}

static int add_syscall(struct under_way *under_way, const struct waiting_thread *thread,
		       const struct call_rec *rec)
{
	uint32_t number = thread->syscall;
	struct waiting_sample sample = {};

	if (under_way->events_fd < 0 || number >= SYSCALLS_MAX ||
	    (rec->syscall != CALL_UNKNOWN && rec->syscall != number) ||
	    bpf_map_lookup_elem(under_way->events_fd, &number, &sample.event) || !sample.event)
		return 0;
	return add(under_way, thread, &sample, rec->syscall_ns, CALL_SYSCALL);
}

/* Adds the call of a lock's function, which is a wait if its thread sleeps in it. */
static int add_function(struct under_way *under_way, const struct waiting_thread *thread,
			const struct call_rec *rec)
{
	struct waiting_sample sample = { .event = under_way->function_event,
					 .link = rec->link,
					 .object = rec->address,
					 .peer = rec->call_peer };

	if (!under_way->function_event || thread->syscall != SYSCALL_FUTEX)
		return 0;
	if (!sample.peer)
		sample.peer = owner_of(thread);
	return add(under_way, thread, &sample, rec->call_ns, CALL_FUNCTION);
}

/* Adds the calls of a thread that does not run. The call of a running thread is sampled when it
 * ends, or not at all. */
static int add_thread(struct under_way *under_way, const struct waiting_thread *thread)
{
	const struct call_rec *rec = find(under_way->recs, under_way->n_recs, thread->tid);
	int ret;

	if (!rec || thread->runs || !thread->cs || thread->cs == ARCH_MODE_COMPAT ||
	    thread->syscall < 0)
		return 0;
	ret = add_lock(under_way, thread, rec);
	if (!ret)
		ret = add_function(under_way, thread, rec);
	return ret ? ret : add_syscall(under_way, thread, rec);
}

static uint64_t since(const struct call_rec *rec, int kind)
{
	return kind == CALL_LOCK       ? rec->lock_ns
	       : kind == CALL_FUNCTION ? rec->call_ns
				       : rec->syscall_ns;
}

/* Appends the call's records to those of the session. Without an entry in the map, drops the sample
 * but not the records of names, since each name is sent only once. */
static void keep(struct under_way *under_way, struct call *call)
{
	const struct call_rec *rec = find(under_way->recs, under_way->n_recs, call->tid);
	bool taken = rec && since(rec, call->kind) == call->since_ns;
	struct pending_record **end = &under_way->session->waiting.samples, *pending;

	while (*end)
		end = &(*end)->next;
	while ((pending = call->records)) {
		call->records = pending->next;
		pending->next = NULL;
		if (!taken && pending_record__type(pending) == REC_SAMPLE) {
			free(pending);
			continue;
		}
		*end = pending;
		end = &pending->next;
	}
}

int session__sample_under_way(struct session *session, struct err *err)
{
	bool syscalls = event_list__of_slot(&session->opts.events, EVENT_SYSCALL);
	struct under_way under_way = {
		.session = session,
		.events_fd = syscalls ? kernel_half__map_fd(session->half, "syscall_events") : -1,
		.lock_event = event_list__of_slot(&session->opts.events, EVENT_LOCK),
		.function_event = event_list__of_slot(&session->opts.events, EVENT_LOCK_CALL)
	};
	int ret;

	if (!syscalls && !under_way.lock_event && !under_way.function_event)
		return 0;
	ret = waiting__list(session->half, &under_way.threads, &under_way.n_threads, err);
	if (!ret)
		ret = list_calls(&under_way, false, err);
	if (ret)
		goto out;
	ret = host_half__new(session->half, session->code.arena, &under_way.host);
	for (size_t i = 0; !ret && i < under_way.n_threads; i++)
		ret = add_thread(&under_way, &under_way.threads[i]);
	if (ret)
		err__set(err, ret, "cannot sample the calls and waits under way: %s",
			 strerror(-ret));
	else
		ret = list_calls(&under_way, true, err);
	for (size_t i = 0; i < under_way.n; i++)
		keep(&under_way, &under_way.list[i]);
out:
	host_half__free(under_way.host);
	free(under_way.threads);
	free(under_way.recs);
	free(under_way.list);
	return ret;
}
