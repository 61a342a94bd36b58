/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_GO_TASKS_H
#define BRAID_GO_TASKS_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "runtimes/go/go_layout.h"
#include "runtimes/runtime.h"

/* Goroutines of a process that are on no thread. The process runs while it is read. */

#define GO_REASONS_MAX	256
#define GO_REASON_BYTES 48

struct go_process {
	UT_hash_handle hh; /* by pid */
	uint32_t pid, space;
	uint64_t bias;
	struct go_fields layout;
	bool has_reasons;			       /* `reasons` was read */
	char reasons[GO_REASONS_MAX][GO_REASON_BYTES]; /* "": unknown */

	/* The goroutine that the caller's function has: */
	uint64_t at; /* address of its struct g */
	uint64_t sp, pc;
	uint32_t status;
	uint64_t seed; /* state of the random choice of goroutines */
};

/* Calls @on_task for all goroutines that are on no thread: they wait, or are ready to run. Returns
 * 0; -ENOTSUP: the list of goroutines is unknown; -EFAULT: it is unreadable; or a negative return
 * of @on_task. @ret_unread is the number of entries that are not plausible. */
int go_tasks__list(struct go_process *process, runtime_task_fn on_task, void *ctx,
		   size_t *ret_unread);

/* As the hook `sample` of struct runtime_parked: waiting goroutines only. */
int go_tasks__sample(struct go_process *process, uint32_t most, runtime_task_fn on_task, void *ctx);

/* Returns true if the goroutine that @on_task has waits where it did when it was read. */
bool go_tasks__is_parked(const struct go_process *process);

#endif
