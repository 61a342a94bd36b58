// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/cpu_clock.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/privilege.h"

int cpu_clock__open(int cpu, uint64_t period_ns)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.size = sizeof(attr),
					.sample_period = period_ns,
					.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
						       PERF_FORMAT_TOTAL_TIME_RUNNING,
					.exclude_idle = 1 };
	int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int cpu_clock__attach(const struct bpf_program *program, int cpu, uint64_t period_ns,
		      uint64_t cookie, struct bpf_link **ret_link, int *ret_fd, struct err *err)
{
	LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = cookie);
	int fd = cpu_clock__open(cpu, period_ns), ret;
	struct bpf_link *link;

	if (fd == -ENODEV || fd == -ENXIO)
		return 0;
	if (fd == -EPERM || fd == -EACCES)
		return privilege__explain(1U << PRIVILEGE_EVENTS, "to sample all CPUs", err);
	if (fd < 0)
		return err__set(err, fd, "cannot open a cpu-clock event on CPU %d: %s", cpu,
				strerror(-fd));
	link = bpf_program__attach_perf_event_opts(program, fd, &opts);
	if (!link) {
		ret = -errno;
		close(fd);
		return err__set(err, ret, "cannot attach to the cpu-clock event of CPU %d: %s", cpu,
				strerror(-ret));
	}
	*ret_link = link;
	if (ret_fd)
		*ret_fd = fd;
	return 0;
}
