// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/tracker_private.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>

#include "core/fd_limit.h"
#include "core/util.h"

/* How the end of a process is learnt of: a descriptor stands for it from its exit on only. */

/* What has no entry in the kernel half any more is gone, and its PID may be another's. */
static int open_living(const struct tracker *tracker, uint32_t pid)
{
	struct proc_rec rec;

	if (bpf_map_lookup_elem(tracker->targets_fd, &pid, &rec))
		return -1;
	return syscall(SYS_pidfd_open, pid, 0);
}

static bool is_readable(int fd)
{
	struct pollfd polled = { .fd = fd, .events = POLLIN };

	return poll(&polled, 1, 0) > 0;
}

void tracker__on_exit(struct tracker *tracker, struct process *process)
{
	if (process->gone || process->ending)
		return;
	if (!process->wanted) {
		tracker__on_gone(tracker, process);
		return;
	}
	process->ending = true;
	/* Without one it is gone a little too early. */
	process->pidfd = fd_limit__hold(open_living(tracker, process->pid));
}

bool process__has_ended(const struct process *process)
{
	return process->pidfd < 0 || is_readable(process->pidfd);
}

bool tracker__lives(const struct tracker *tracker, const struct process *process)
{
	int fd = open_living(tracker, process->pid);
	bool lives = fd < 0 ? errno != ENOENT && errno != ESRCH : !is_readable(fd);

	close_fd(&fd);
	return lives;
}

void tracker__look_for_exits(struct tracker *tracker)
{
	struct process *process;

	for (process = tracker->processes; process; process = process->hh.next)
		if (!process->gone && !process->ending && !tracker__lives(tracker, process))
			tracker__on_exit(tracker, process);
}
