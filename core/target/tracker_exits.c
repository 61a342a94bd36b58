// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/tracker_state.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <utlist.h>

#include "core/base/fd_limit.h"
#include "core/base/util.h"
#include "core/kernel/maps.h"
#include "core/target/tracker_runtimes.h"

/* Detection of the end of processes. The kernel half reports the exit of a process, and for most
 * processes that is all: thousands of them may end in a second, and samples after their exit are
 * not worth the system calls. A process that the user named is sampled until it is really gone,
 * which may take long, as it frees its memory. For a command the exit status is also needed. So a
 * descriptor represents such a process from its exit on. */

/* Opens a descriptor of the process. Returns -1 if the kernel half has no entry for it: it is gone,
 * and its PID may be another's. */
static int open_living(const struct tracker *tracker, uint32_t pid)
{
	struct proc_rec rec;

	if (map__lookup(tracker->targets_fd, &pid, &rec))
		return -1;
	return syscall(SYS_pidfd_open, pid, 0);
}

static bool is_readable(int fd)
{
	struct pollfd polled = { .fd = fd, .events = POLLIN };

	return poll(&polled, 1, 0) > 0;
}

/* Returns true if the process ended before events could attach probes to it, or to the file that it
 * has executed. */
static bool is_unprobed(const struct process *process)
{
	return process->state != PROCESS_STARTING &&
	       (!process->is_joined || (!process->exe && !process->refreshed_ns));
}

void tracker__on_exit(struct tracker *tracker, struct process *process)
{
	if (process->state >= PROCESS_ENDING)
		return;
	if (!process->requested) {
		tracker__on_end(tracker, process);
		return;
	}
	tracker->n_unprobed += is_unprobed(process);
	process__enter(process, PROCESS_ENDING);
	/* Without a descriptor, the process counts as gone a little too early. */
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
		if (process->state < PROCESS_ENDING && !tracker__lives(tracker, process))
			tracker__on_exit(tracker, process);
}

void tracker__on_end(struct tracker *tracker, struct process *process)
{
	struct proc_rec rec;

	if (process__is_ended(process))
		return;
	if (process->state != PROCESS_ENDING)
		tracker->n_unprobed += is_unprobed(process);
	process__enter(process, PROCESS_ENDED);
	tracker->n_ended++;
	process->ended_ns = now_ns();
	DL_APPEND2(tracker->ended, process, prev_ended, next_ended);
	tracker__evaluate_pre_attached(tracker, process);
	tracker__unprobe(tracker, process);
	if (!map__lookup(tracker->targets_fd, &process->pid, &rec) &&
	    rec.program == process->program) /* otherwise its PID was reused */
		map__delete(tracker->targets_fd, &process->pid);
	process->attached = process__attached(process);
	tracker__put_space(tracker, process->space);
	process->space = NULL;
	close_fd(&process->pidfd);
}

struct process *tracker__first_spent(const struct tracker *tracker, uint64_t consumed_ns)
{
	struct process *first = tracker->ended;

	return first && first->ended_ns + TRACKER_LAST_SAMPLE_NS <= consumed_ns ? first : NULL;
}
