/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_LOCKS_H
#define BRAID_PYTHON_LOCKS_H

#include "runtimes/python/python_threads.h"
#include "runtimes/runtime.h"

/* Which lock of Python's module threading each waits for in its futex, and who holds it, as the
 * runtime's hook `lock_holders`. CPython 3.6 to 3.15. */
void python_locks__find(const struct python_threads *process, struct runtime_waiter *waiters,
			size_t n);

#endif
