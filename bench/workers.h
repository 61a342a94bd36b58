/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_WORKERS_H
#define BRAID_WORKERS_H

#include <stdint.h>
#include <sys/types.h>

#include "core/err.h"
#include "core/trap_sites.h"

/* Threads of a child of braid's, one to a CPU, that run code to be measured (core/trap_sites.h),
 * when told. They end with braid, however it ends. */
struct workers;

enum worker_task {
	/* The function of core/trap_sites.h of that name */
	WORKER_NOP,
	WORKER_NOP_COUNTED,
	WORKER_NOP5,
	WORKER_PUSH,
	WORKER_PUSH_RETURN,
	WORKER_PUSH_PAIR,
	WORKER_STEP,
	WORKER_PAIR,
	WORKER_PAIR_SHADOW,
	WORKER_PAIR_CALLS,
	WORKER_SITES_N,
	/* Nothing but additions: `n` thousand */
	WORKER_SPIN = WORKER_SITES_N,
	WORKER_DEEP, /* the same, in `depth` calls of functions with frame pointers */
};

trap_site_fn worker__site(enum worker_task task); /* below WORKER_SITES_N */

/* `n`: one for each of the first so many CPUs that this process may use. -EINVAL: fewer. */
int workers__start(unsigned n, struct workers **ret, struct err *err);
void workers__stop(struct workers *workers); /* NULL is fine */

unsigned workers__n(const struct workers *workers);
pid_t workers__pid(const struct workers *workers);
int workers__cpu(const struct workers *workers, unsigned i);

/* What one time took, on the average of all. Some kernels leave interrupts out of CPU time
 * (CONFIG_IRQ_TIME_ACCOUNTING). */
struct worker_times {
	double cpu_ns, wall_ns;
};

/* All do it `n` times at once. */
int workers__run(struct workers *workers, enum worker_task task, uint32_t n, uint32_t depth,
		 struct worker_times *ret, struct err *err);

/* The same, without waiting for the end: `workers__wait` does. */
int workers__begin(struct workers *workers, enum worker_task task, uint32_t n, uint32_t depth,
		   struct err *err);
int workers__wait(struct workers *workers, struct worker_times *ret, struct err *err);

#endif
