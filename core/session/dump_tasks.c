// SPDX-License-Identifier: GPL-2.0-or-later
/* Tasks, which wait outside of any thread: their frames are walked as those of a thread, in a
 * memory in which that runs them. */
#include "core/session/dump_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/host/programs.h"
#include "core/base/util.h"

/* Ids that no thread has (PID_MAX_LIMIT, include/linux/threads.h). */
#define FIRST_ID (1U << 30)

struct taking {
	struct dump *dump;
	struct memory *patched;
	struct err *err;
};

static int on_task(void *ctx, const struct runtime_task *task)
{
	const struct taking *taking = ctx;
	struct dump *dump = taking->dump;
	struct dump_process *result = dump->result;
	struct host_thread thread = { .tgid = dump->process->pid,
				      .tid = dump->process->pid,
				      .name = dump->process->info.name,
				      .syscall = -1,
				      .fs_base = task->fs_base,
				      .own_ids = dump->own_ids };
	struct dump_thread *ret;
	int code;

	if (array__reserve(&result->tasks, &result->cap_tasks, result->n_tasks + 1, sizeof(*ret)) ||
	    memory__patch(taking->patched, task->patches, task->n_patches))
		return -ENOMEM;
	for (int i = 0; i < UNWIND_REGS; i++)
		thread.regs[i] = UNKNOWN_REG;
	ret = &result->tasks[result->n_tasks++];
	*ret = (struct dump_thread) { .tid = FIRST_ID + result->n_tasks, .call = -1 };
	snprintf(ret->name, sizeof(ret->name), "%s", task->name);
	snprintf(ret->waits_for, sizeof(ret->waits_for), "%s", task->waits_for ?: "");
	code = dump__sample(dump, &thread, taking->patched);
	if (code)
		return code;
	dump__keep_runtimes(dump, ret->tid);
	return dump__route(dump, taking->err);
}

static int by_name(const void *a, const void *b)
{
	const struct dump_thread *x = a, *y = b;
	int order = strverscmp(x->name, y->name);

	return order ? order : x->tid < y->tid ? -1 : x->tid > y->tid;
}

int dump__take_tasks(struct dump *dump, struct err *err)
{
	const struct runtime *const *runtimes = dump->opts.runtimes;
	struct taking taking = { .dump = dump, .err = err };
	int code = memory__patched(dump->cached, &taking.patched);

	for (int r = 0; !code && runtimes[r]; r++)
		if (runtimes[r]->tasks && dump->sessions[r])
			code = runtimes[r]->tasks(dump->sessions[r], dump->process->pid, on_task,
						  &taking);
	memory__free(taking.patched);
	if (dump->result->n_tasks)
		qsort(dump->result->tasks, dump->result->n_tasks, sizeof(*dump->result->tasks),
		      by_name);
	return code ? err__set(err, code, "the tasks of PID %u: %s", dump->process->pid,
			       strerror(-code))
		    : 0;
}
