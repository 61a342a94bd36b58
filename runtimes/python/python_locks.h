/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_LOCKS_H
#define BRAID_PYTHON_LOCKS_H

#include "runtimes/python/python_threads.h"
#include "runtimes/runtime.h"

/* Finds the lock of Python's module threading for which each waiter waits in its futex, and the
 * holder: the hook `lock_holders`. CPython 3.6 to 3.15. */
void python_locks__find(const struct python_threads *process, struct runtime_waiter *waiters,
			size_t n);

#endif
