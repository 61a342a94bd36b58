/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CPU_CLOCK_H
#define BRAID_CPU_CLOCK_H

#include <stdint.h>

#include <bpf/libbpf.h>

#include "core/base/err.h"

/* The result of read() on the event's descriptor. The kernel does not count time in which it
 * stopped the event (sample_rate.h). */
struct cpu_clock_time {
	uint64_t counted_ns, enabled_ns, running_ns;
};

/* Opens an event on one CPU that occurs after each @period_ns of a running thread. It has a period
 * instead of a frequency, so that the kernel accepts any. The kernel sometimes stops an event with
 * a period that is too short (sample_rate.h). Returns the descriptor, or the error of
 * perf_event_open(): -ENODEV or -ENXIO if the CPU is offline. */
int cpu_clock__open(int cpu, uint64_t period_ns);

/* Runs @program at each such event, with @cookie as its bpf_get_attach_cookie(). *@ret_link owns
 * the event; *@ret_fd is its descriptor (@ret_fd may be NULL). Returns 0 with neither changed if
 * the CPU is offline. */
int cpu_clock__attach(const struct bpf_program *program, int cpu, uint64_t period_ns,
		      uint64_t cookie, struct bpf_link **ret_link, int *ret_fd, struct err *err);

#endif
