// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cpu_clock.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

int cpu_clock__open(int cpu, uint64_t period_ns)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.size = sizeof(attr),
					.sample_period = period_ns,
					.exclude_idle = 1 };
	int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}
