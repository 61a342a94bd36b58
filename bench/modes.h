/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_MODES_H
#define BRAID_MODES_H

#include <stdint.h>
#include <sys/types.h>

#include "core/err.h"

/* How a process divides its CPU time between user mode and the kernel, by ticks on all CPUs. What
 * the kernel itself tells (utime, stime) is made of far fewer ticks on most systems. */
struct mode_sampler;

struct mode_ticks {
	uint64_t user, kernel;
};

/* `pid`: of a thread group, in braid's own PID namespace. -EPERM, ... */
int mode_sampler__start(pid_t pid, uint64_t period_ns, struct mode_sampler **ret, struct err *err);
void mode_sampler__stop(struct mode_sampler *sampler); /* NULL is fine */

/* So far, and since then. */
struct mode_ticks mode_sampler__ticks(const struct mode_sampler *sampler);
struct mode_ticks mode_sampler__since(const struct mode_sampler *sampler,
				      const struct mode_ticks *then);

#endif
