/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_TASKS_H
#define BRAID_PYTHON_TASKS_H

#include "runtimes/python/python_threads.h"
#include "runtimes/runtime.h"

/* The tasks of asyncio that wait, as the runtime's hook `tasks`. CPython 3.8 to 3.14. */
int python_tasks__list(const struct python_threads *process, runtime_task_fn on_task, void *ctx);

#endif
