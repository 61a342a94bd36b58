// SPDX-License-Identifier: GPL-2.0-or-later
/* Tasks that wait outside of any thread. Their frames are walked like those of a thread, in a
 * patched memory in which a thread runs them. */
#include "core/dump/dump_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/host/programs.h"
#include "core/base/util.h"

/* First of the ids that no thread has (PID_MAX_LIMIT, include/linux/threads.h). */
#define FIRST_ID (1U << 30)

struct taking {
	struct dump *dump;
	const struct runtime *runtime;
	struct memory *patched;
	struct err *err;
};

/* Adds an entry for the task with all data except frames. NULL: out of memory. */
static struct dump_thread *add_task(const struct taking *taking, const struct runtime_task *task)
{
	struct dump_process *result = taking->dump->result;
	struct dump_thread *ret;

	if (array__reserve(&result->tasks, &result->cap_tasks, result->n_tasks + 1, sizeof(*ret)))
		return NULL;
	ret = &result->tasks[result->n_tasks++];
	*ret = (struct dump_thread) { .tid = FIRST_ID + result->n_tasks,
				      .call = -1,
				      .sort = taking->runtime->inspect->task ?: "task" };
	snprintf(ret->name, sizeof(ret->name), "%s", task->name);
	snprintf(ret->waits_for, sizeof(ret->waits_for), "%s", task->waits_for ?: "");
	snprintf(ret->doing, sizeof(ret->doing), "%s", task->state ?: "");
	if (task->tid)
		ret->of_thread = dump__by_own_id(taking->dump, task->tid);
	return ret;
}

static int on_task(void *ctx, const struct runtime_task *task)
{
	const struct taking *taking = ctx;
	struct dump *dump = taking->dump;
	struct host_thread thread = { .tgid = dump->process->pid,
				      .tid = dump->process->pid,
				      .name = dump->process->info.name,
				      .syscall = -1,
				      .fs_base = task->fs_base,
				      .own_ids = dump->own_ids,
				      .start_stack = dump->start_stack,
				      .suspended = !!task->regs };
	struct dump_thread *ret = add_task(taking, task);
	int code;

	if (!ret || memory__patch(taking->patched, task->patches, task->n_patches))
		return -ENOMEM;
	for (int i = 0; i < UNWIND_REGS; i++)
		thread.regs[i] = task->regs ? task->regs[i] : UNKNOWN_REG;
	if (task->has_native_frames)
		thread.tid = ret->tid;
	code = dump__sample(dump, &thread, taking->patched);
	if (code)
		return code;
	if (!task->has_native_frames)
		dump__keep_runtimes(dump, ret->tid);
	return dump__route(dump, taking->err);
}

/* Compares tasks by thread and name. Those without a thread are last. */
static int by_name(const void *a, const void *b)
{
	const struct dump_thread *x = a, *y = b;
	int order = strverscmp(x->name, y->name);

	if (x->of_thread != y->of_thread)
		return x->of_thread - 1 < y->of_thread - 1 ? -1 : 1;
	return order ? order : x->tid < y->tid ? -1 : x->tid > y->tid;
}

static void note_left_out(struct dump_process *result, const char *what)
{
	size_t n = strlen(result->note);

	if (what)
		snprintf(result->note + n, sizeof(result->note) - n, "%s%s", n ? "; " : "", what);
}

int dump__take_tasks(struct dump *dump, struct err *err)
{
	const struct runtime *const *runtimes = dump->opts.runtimes;
	struct dump_process *result = dump->result;
	struct taking taking = { .dump = dump, .err = err };
	int code = memory__patched(dump->cached, &taking.patched);

	for (int r = 0; !code && runtimes[r]; r++) {
		if (!runtime__has(runtimes[r], inspect, tasks) || !dump->sessions[r])
			continue;
		taking.runtime = runtimes[r];
		code = runtimes[r]->inspect->tasks(dump->sessions[r], dump->process->pid, on_task,
						   &taking);
		if (!code && runtimes[r]->inspect->tasks_left_out)
			note_left_out(result,
				      runtimes[r]->inspect->tasks_left_out(dump->sessions[r]));
	}
	memory__free(taking.patched);
	if (result->n_tasks)
		qsort(result->tasks, result->n_tasks, sizeof(*result->tasks), by_name);
	return code ? err__set(err, code, "cannot list the tasks of PID %u: %s", dump->process->pid,
			       strerror(-code))
		    : 0;
}
