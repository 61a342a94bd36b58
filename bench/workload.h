/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_WORKLOAD_H
#define BRAID_WORKLOAD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "runtimes/runtime.h"

/* The programs that are bundled for measuring runtimes (bench/assets/): each does nothing but
 * calls, or ordinary work, as much of it as it is asked for, and says how much CPU time that took.
 */

#define WORKLOAD_CALLEE "callee" /* what the name of the function that is called ends with */

/* One that is found on this machine. */
struct interpreter {
	const char *runtime; /* its name */
	char program[256];   /* a path */
	char version[32];
};

/* The first of this runtime in PATH that can run its workload. -ENOENT, -ENOTSUP. */
int workload__find(const char *runtime, struct interpreter *ret, struct err *err);

enum workload_task { WORKLOAD_CALLS, WORKLOAD_ORDINARY, WORKLOAD_TASKS_N };

/* A running one. It ends with this process, however that ends. */
struct workload;

/* `prepare`: as the runtime has a command prepared for probes (NULL: as it is). -ENOTSUP if it does
 * not start. */
int workload__start(const struct interpreter *interpreter, const struct runtime *prepare,
		    struct workload **ret, struct err *err);
void workload__stop(struct workload *workload); /* NULL is fine */
pid_t workload__pid(const struct workload *workload);

/* Does it `n` times. `ret_ns`: CPU time of all; `ret_calls`: of functions of its own. -EPIPE when
 * it has ended, -ETIMEDOUT. */
int workload__run(struct workload *workload, enum workload_task task, uint64_t n, double *ret_ns,
		  uint64_t *ret_calls, struct err *err);

/* Has it use a CPU in `depth` calls of a function of its own, from now on and for ever. */
int workload__deepen(struct workload *workload, unsigned depth, struct err *err);

#endif
