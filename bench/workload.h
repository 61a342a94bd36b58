/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_WORKLOAD_H
#define BRAID_WORKLOAD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "runtimes/runtime.h"

/* The programs that are bundled for measuring runtimes (bench/assets/). Each runs only calls, or
 * ordinary work, in the requested amount, and reports the CPU time. */

#define WORKLOAD_CALLEE "callee" /* end of the name of the called function */

/* an interpreter that is installed on this machine */
struct interpreter {
	const char *runtime; /* name of the runtime */
	char program[256];   /* path */
	char version[32];
};

/* Finds the first interpreter of this runtime in PATH that can run its workload. Returns 0, -ENOENT
 * or -ENOTSUP. */
int workload__find(const char *runtime, struct interpreter *ret, struct err *err);

enum workload_task { WORKLOAD_CALLS, WORKLOAD_ORDINARY, WORKLOAD_TASKS_N };

/* A running workload. It ends with this process, however this process ends. */
struct workload;

/* Starts a workload. @prepare: the runtime that prepares the command for probes; NULL: unprepared.
 * Returns 0, or -ENOTSUP if it does not start. */
int workload__start(const struct interpreter *interpreter, const struct runtime *prepare,
		    struct workload **ret, struct err *err);
void workload__stop(struct workload *workload); /* NULL is fine */
pid_t workload__pid(const struct workload *workload);

/* Runs @task @n times. *@ret_ns is the CPU time of all runs; *@ret_calls is the number of calls of
 * the workload's own functions. Returns 0, -EPIPE if the workload ended, or -ETIMEDOUT. */
int workload__run(struct workload *workload, enum workload_task task, uint64_t n, double *ret_ns,
		  uint64_t *ret_calls, struct err *err);

/* Makes the workload use a CPU in @depth nested calls of its own function, from now on, without an
 * end. */
int workload__deepen(struct workload *workload, unsigned depth, struct err *err);

#endif
