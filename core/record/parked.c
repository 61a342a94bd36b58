// SPDX-License-Identifier: GPL-2.0-or-later
/* Tasks that wait outside of any thread, as samples of `wall` (struct runtime_parked). No event of
 * the kernel has such a wait, so braid reads some of the tasks about ten times a second, while the
 * process runs. Each sample stands for the time since the previous round of samples. The intervals
 * vary at random, so that a program with a period of its own is not always read at the same place.
 *
 * The cost is limited twice. A round has at most TASKS_MAX samples, however many tasks there are.
 * After a round that took long, the next one is delayed, so that rounds take at most 1 / COST_SHARE
 * of one CPU. Fewer samples do not change the sums, only their error. */
#include "core/record/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/kernel/host_half.h"

#define PERIOD_NS   100000000ULL
#define TASKS_MAX   128 /* samples of one round */
#define TASKS_LEAST 4	/* minimum for one process */
#define COST_SHARE  50	/* reciprocal of the share of one CPU */

struct parked_look {
	struct session *session;
	struct host_half *host; /* NULL: not needed yet */
	uint32_t event;
	uint64_t now_ns, value;
	uint64_t n; /* tasks that were sampled */
	/* The process and the runtime whose tasks are offered: */
	const struct process *process;
	int runtime;
	struct err *err;
};

/* Adds two texts to the attributes, if there is room. */
static void add_label(struct rec_context *rec, const char *key, const char *value)
{
	size_t n = strlen(key) + 1, m = value ? strlen(value) + 1 : 0;

	if (m <= 1 || rec->head.size + n + m > CONTEXT_ATTRIBUTES_MAX)
		return;
	memcpy(rec->attributes + rec->head.size, key, n);
	memcpy(rec->attributes + rec->head.size + n, value, m);
	rec->head.size += n + m;
}

/* Appends the task's labels as a context. Returns 0 or -ENOMEM. */
static int append_labels(const struct parked_look *look, const struct runtime_task *task,
			 struct pending_record ***end, uint32_t *ret_context)
{
	struct rec_context rec = { .type = REC_CONTEXT,
				   .tgid = look->process->pid,
				   .number = CONTEXT_OWN,
				   .head.valid = CONTEXT_NAMED };

	add_label(&rec, PARKED_REASON, task->reason);
	add_label(&rec, PARKED_NAME, task->name);
	*ret_context = rec.head.size ? CONTEXT_OWN : 0;
	return rec.head.size ? waiting_sample__append(end, &rec, REC_CONTEXT_HEADER + rec.head.size)
			     : 0;
}

/* Makes the records of a task's sample. */
static int sample_task(struct parked_look *look, const struct runtime_task *task,
		       struct pending_record ***end)
{
	const struct process *process = look->process;
	struct waiting_task parked = { .id = task->id,
				       .stands_for = task->stands_for,
				       .has_regs = task->regs,
				       .has_native_frames = task->has_native_frames,
				       .patches = task->patches,
				       .n_patches = task->n_patches };
	struct waiting_sample sample = { .event = look->event,
					 .time_ns = look->now_ns - look->n++,
					 .value = look->value,
					 .condition.state = STATE_PARKED,
					 .task = &parked };
	struct waiting_thread thread = { .tgid = process->pid,
					 .tid = task->has_native_frames ? PARKED_TID : process->pid,
					 .cs = 1,
					 .fs_base = task->fs_base,
					 .syscall = NO_SYSCALL };
	int ret = append_labels(look, task, end, &parked.context);

	for (int i = 0; i < UNWIND_REGS; i++)
		thread.regs[i] = task->regs ? task->regs[i] : UNKNOWN_TASK_REG;
	strncpy(thread.comm, look->session->opts.runtimes[look->runtime]->parked->many,
		sizeof(thread.comm) - 1);
	if (!ret && !look->host)
		ret = host_half__new(look->session->half, look->session->code.arena, &look->host);
	return ret ? ret
		   : host_half__sample(look->host, process->space, &thread, &sample,
				       waiting_sample__append, end);
}

/* Returns true if the record belongs to a sample, and not to several. */
static bool is_of_sample(const struct pending_record *pending)
{
	uint32_t type = pending_record__type(pending);

	return type == REC_SAMPLE || type == REC_CONTEXT || type == REC_STACK;
}

static int on_task(void *ctx, const struct runtime_task *task)
{
	struct parked_look *look = ctx;
	struct session *session = look->session;
	const struct runtime *runtime = session->opts.runtimes[look->runtime];
	struct pending_record *first = NULL, *next, **end = &first;
	int ret = sample_task(look, task, &end);
	bool stood = !ret && runtime->parked->is_parked(session->runtime_sessions[look->runtime],
							look->process->pid, task);

	session->parked.n_moved += !ret && !stood;
	for (; first; first = next) {
		next = first->next;
		/* Each name is sent once, so names are routed even if the sample is dropped. */
		if (!ret && (stood || !is_of_sample(first)))
			ret = routing__record(&session->routing, first->data, first->size,
					      look->err);
		free(first);
	}
	return ret;
}

/* Returns the number of the next runtime from @from on that has readable tasks in the process; -1:
 * there is none. */
static int next_runtime(const struct session *session, const struct process *process, int from)
{
	for (int i = from; session->opts.runtimes[i]; i++)
		if (session->opts.runtimes[i]->parked && session->runtime_sessions[i] &&
		    process->space && process->space->attached & 1U << i)
			return i;
	return -1;
}

static bool has_tasks(const struct session *session, const struct process *process)
{
	return !process__is_ended(process) && next_runtime(session, process, 0) >= 0;
}

static int look_at(struct parked_look *look, uint32_t most)
{
	struct session *session = look->session;
	int ret = 0;

	for (int i = 0; !ret && (i = next_runtime(session, look->process, i)) >= 0; i++) {
		struct err ignored = {};

		look->runtime = i;
		ret = session->opts.runtimes[i]->parked->sample(session->runtime_sessions[i],
								look->process->pid, most, on_task,
								look, &ignored);
		ret = ret == -ENOTSUP ? 0 : ret;
	}
	return ret;
}

static uint32_t count_processes(const struct session *session)
{
	uint32_t n = 0;

	for (const struct process *process = tracker__first(session->tracker); process;
	     process = process->hh.next)
		n += has_tasks(session, process);
	return n;
}

/* Samples the tasks of all processes. */
static int look_at_all(struct parked_look *look)
{
	struct session *session = look->session;
	uint32_t n = count_processes(session);
	uint32_t most = n ? max_of(TASKS_MAX / n, (uint32_t)TASKS_LEAST) : 0;
	int ret = 0;

	for (const struct process *process = tracker__first(session->tracker); !ret && process;
	     process = process->hh.next) {
		look->process = process;
		if (has_tasks(session, process))
			ret = look_at(look, most);
	}
	if (!ret && look->host)
		host_half__share_codes(look->host);
	host_half__free(look->host);
	return ret;
}

/* Returns the number of the event that has such samples. An event with a minimum has none, as the
 * length of a wait is unknown. */
static uint32_t event_of(const struct session *session)
{
	for (uint32_t i = 0; i < session->opts.events.n; i++) {
		const struct event_spec *spec = &session->opts.events.list[i];

		if (spec->kind->slot == EVENT_WALL && !spec->minimum && !spec->filtered)
			return i + 1;
	}
	return 0;
}

int session__sample_parked(struct session *session, bool last, struct err *err)
{
	struct session_parked *parked = &session->parked;
	struct parked_look look = {
		.session = session, .event = event_of(session), .now_ns = now_ns(), .err = err
	};
	uint64_t began = thread_cpu_ns(), cost;
	int ret;

	if (!look.event || !session->start_ns || (look.now_ns < parked->next_ns && !last))
		return 0;
	if (last)
		look.now_ns = session->end_ns - 1;
	look.value = look.now_ns - min_of(max_of(parked->last_ns, session->start_ns), look.now_ns);
	ret = look_at_all(&look);
	parked->last_ns = look.now_ns;
	cost = thread_cpu_ns() - began;
	parked->next_ns =
		look.now_ns + max_of(PERIOD_NS / 2 + random() % PERIOD_NS, COST_SHARE * cost);
	return ret && !err->text[0]
		       ? err__set(err, ret, "cannot sample the waiting tasks: %s", strerror(-ret))
		       : ret;
}
