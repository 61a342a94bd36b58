/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_AWAITS_H
#define BRAID_PYTHON_AWAITS_H

#include "runtimes/python/python_task.h"

/* The reason for which a task of asyncio waits. */

#define PYTHON_REASON_BYTES 64

/* Puts the reason into @buf: "sleep", "socket", "Lock", "gather", "task"; "": unknown. @chain: the
 * task's coroutines, at least one. */
void python_awaits__reason(struct python_task_reader *reader, const struct python_task *task,
			   const struct python_coroutines *chain, char buf[PYTHON_REASON_BYTES]);

#endif
