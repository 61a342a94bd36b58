/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CPU_CLOCK_H
#define BRAID_CPU_CLOCK_H

#include <stdint.h>

#include <bpf/libbpf.h>

#include "core/base/err.h"

/* The result of read() on the event's descriptor. The kernel counts no time in which it has stopped
 * the event (sample_rate.h). */
struct cpu_clock_time {
	uint64_t counted_ns, enabled_ns, running_ns;
};

/* An event on one CPU, every `period_ns` that something runs there. It has a period, so that the
 * kernel accepts any; too short a one is stopped now and then (sample_rate.h). Its fd, or what
 * perf_event_open fails with: -ENODEV or -ENXIO when the CPU is not online. */
int cpu_clock__open(int cpu, uint64_t period_ns);

/* Runs `program` at each such event. `ret_link` owns the event, whose fd is also told (`ret_fd` may
 * be NULL). 0 with neither changed: the CPU is not online. */
int cpu_clock__attach(const struct bpf_program *program, int cpu, uint64_t period_ns,
		      struct bpf_link **ret_link, int *ret_fd, struct err *err);

/* The same with what bpf_get_attach_cookie() gives the program. */
int cpu_clock__attach_event(const struct bpf_program *program, int cpu, uint64_t period_ns,
			    uint64_t cookie, struct bpf_link **ret_link, int *ret_fd,
			    struct err *err);

#endif
