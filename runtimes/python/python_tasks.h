/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_TASKS_H
#define BRAID_PYTHON_TASKS_H

#include "runtimes/python/python_threads.h"
#include "runtimes/runtime.h"

/* The tasks of asyncio, CPython 3.8 to 3.15. */

/* The hook `tasks`: all tasks that wait. Sets *@ret_cut to true if there are more. */
int python_tasks__list(struct python_threads *process, bool *ret_cut, runtime_task_fn on_task,
		       void *ctx);

/* The hook `sample`: a part of the tasks that wait. */
int python_tasks__sample(struct python_threads *process, uint32_t most, runtime_task_fn on_task,
			 void *ctx);

/* Returns true if the task that on_task has is unchanged. */
bool python_tasks__is_unchanged(struct python_threads *process);

#endif
