/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_ASYNCIO_H
#define BRAID_PYTHON_ASYNCIO_H

#include <stdint.h>

/* From 3.14 on the module _asyncio describes its tasks: Py_AsyncioModuleDebugOffsets
 * (Modules/_asynciomodule.c), in a section of the file that contains the module. */
struct python_asyncio {
	/* offsets in a task */
	uint64_t task_bytes, task_name, task_awaited_by, task_is_task, task_awaited_by_is_set,
		task_coroutine, task_node;
	/* offsets in an interpreter */
	uint64_t interpreter_bytes, interpreter_tasks;
	/* offsets in a thread state */
	uint64_t thread_bytes, thread_loop, thread_task, thread_tasks;
};

/* -ENOENT: the process has not loaded the module. */
int python_asyncio__find(uint32_t pid, struct python_asyncio *ret);

#endif
