// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/breakpoint.h"

#include <dirent.h>
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/util.h"

#define BREAKPOINT_EVENT 1 /* number of the event in the session */

static int open_event(pid_t tid, uint64_t address)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_BREAKPOINT,
					.size = sizeof(attr),
					.bp_type = HW_BREAKPOINT_X,
					.bp_addr = address,
					.bp_len = sizeof(long),
					.sample_period = 1,
					.inherit = 1,
					.exclude_kernel = 1 };
	int fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int attach_thread(struct breakpoints *breakpoints, const struct bpf_program *program,
			 uint32_t tid, uint64_t address, struct err *err)
{
	LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = BREAKPOINT_EVENT);
	int fd, ret;

	if (array__reserve(&breakpoints->links, &breakpoints->cap, breakpoints->n + 1,
			   sizeof(struct bpf_link *)))
		return err__set(err, -ENOMEM, "out of memory");
	fd = open_event(tid, address);
	if (fd == -ESRCH) /* the thread has ended */
		return 0;
	if (fd < 0)
		return err__set(err, fd, "cannot set a hardware breakpoint in thread %u: %s", tid,
				strerror(-fd));
	breakpoints->links[breakpoints->n] =
		bpf_program__attach_perf_event_opts(program, fd, &opts);
	if (!breakpoints->links[breakpoints->n]) {
		ret = -errno;
		close(fd);
		return err__set(err, ret, "cannot attach to a hardware breakpoint: %s",
				strerror(-ret));
	}
	breakpoints->n++;
	return 0;
}

int breakpoints__attach(struct breakpoints *breakpoints, const struct bpf_program *program,
			uint32_t pid, uint64_t address, struct err *err)
{
	const struct dirent *entry;
	char path[64];
	int ret = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	tasks = opendir(path);
	if (!tasks)
		return err__set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	while (!ret && (entry = readdir(tasks)))
		if (entry->d_name[0] != '.')
			ret = attach_thread(breakpoints, program, strtoul(entry->d_name, NULL, 10),
					    address, err);
	closedir(tasks);
	return ret;
}

void breakpoints__detach(struct breakpoints *breakpoints)
{
	size_t i;

	for (i = 0; i < breakpoints->n; i++)
		bpf_link__destroy(breakpoints->links[i]);
	free(breakpoints->links);
	*breakpoints = (struct breakpoints) {};
}

static __attribute__((noinline)) void passed(void)
{
	asm volatile(""); /* prevents removal of the call */
}

bool breakpoints__fire(void)
{
	int fd = open_event(0, (uint64_t)(uintptr_t)passed);
	uint64_t n = 0;

	if (fd < 0)
		return false;
	passed();
	if (read(fd, &n, sizeof(n)) != sizeof(n))
		n = 0;
	close(fd);
	return n == 1;
}
