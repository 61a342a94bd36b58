// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cpu_clock.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/privilege.h"

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

int cpu_clock__attach(const struct bpf_program *program, int cpu, uint64_t period_ns,
		      struct bpf_link **ret_link, int *ret_fd, struct err *err)
{
	int fd = cpu_clock__open(cpu, period_ns), code;
	struct bpf_link *link;

	if (fd == -ENODEV || fd == -ENXIO)
		return 0;
	if (fd == -EPERM || fd == -EACCES)
		return privilege__explain(1U << PRIVILEGE_EVENTS, "to sample all CPUs", err);
	if (fd < 0)
		return err__set(err, fd, "cannot open a cpu-clock event on CPU %d: %s", cpu,
				strerror(-fd));
	link = bpf_program__attach_perf_event(program, fd);
	if (!link) {
		code = -errno;
		close(fd);
		return err__set(err, code, "cannot attach to the cpu-clock event of CPU %d: %s",
				cpu, strerror(-code));
	}
	*ret_link = link;
	if (ret_fd)
		*ret_fd = fd;
	return 0;
}
