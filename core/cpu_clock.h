/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CPU_CLOCK_H
#define BRAID_CPU_CLOCK_H

#include <stdint.h>

/* An event on one CPU, every `period_ns` (a period, not a frequency: the kernel's limit of sample
 * frequencies does not apply) that something runs there. Its fd, or what perf_event_open fails
 * with: -ENODEV or -ENXIO when the CPU is not online. */
int cpu_clock__open(int cpu, uint64_t period_ns);

#endif
