// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/restart.h"

#include <asm/unistd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/target/threads.h"

/* Calls that are not in the table, and the effect of a stop of a thread in them:
 *
 *   call                                          effect
 *   epoll_wait, epoll_pwait, epoll_pwait2,        return EINTR (signal(7))
 *   semop, semtimedop, io_getevents,
 *   io_pgetevents, io_uring_enter,
 *   rt_sigtimedwait
 *   recv*, send*, accept, connect,                return EINTR if the socket has a timeout, or less
 *   read and write of a socket                    than was requested (MSG_WAITALL, SO_RCVLOWAT)
 *   write, writev, sendfile, splice, getrandom    return the number of bytes done so far
 *   read of a terminal, of inotify, of FUSE       depends on the driver
 *   futex                                         The thread leaves the queue: FUTEX_WAKE wakes
 *                                                 no thread meanwhile, and returns 0. FUTEX_WAIT
 *                                                 returns EAGAIN if the value has changed.
 *   open of a FIFO                                The other side may have seen this one, and finds
 *                                                 it gone.
 *   flock, fcntl                                  depends on the file system
 *   restart_syscall                               any call that was interrupted before */
static const struct restart restarts[] = {
	{ __NR_pause, RESTART_ALWAYS, 0, "kernel/signal.c, pause: -ERESTARTNOHAND" },
	{ __NR_rt_sigsuspend, RESTART_ALWAYS, 0, "kernel/signal.c, sigsuspend: -ERESTARTNOHAND" },
	{ __NR_wait4, RESTART_ALWAYS, 0, "kernel/exit.c, do_wait: -ERESTARTSYS" },
	{ __NR_waitid, RESTART_ALWAYS, 0, "kernel/exit.c, do_wait: -ERESTARTSYS" },
	{ __NR_msgsnd, RESTART_ALWAYS, 0, "ipc/msg.c, do_msgsnd: -ERESTARTNOHAND" },
	{ __NR_msgrcv, RESTART_ALWAYS, 0, "ipc/msg.c, do_msgrcv: -ERESTARTNOHAND" },
	{ __NR_mq_timedsend, RESTART_ALWAYS, 0, "ipc/mqueue.c, wq_sleep: -ERESTARTSYS" },
	{ __NR_mq_timedreceive, RESTART_ALWAYS, 0, "ipc/mqueue.c, wq_sleep: -ERESTARTSYS" },
	{ __NR_poll, RESTART_ALWAYS, 0, "fs/select.c, poll: -ERESTART_RESTARTBLOCK" },
	{ __NR_ppoll, RESTART_WRITABLE, 2, "fs/select.c, poll_select_finish: -ERESTARTNOHAND" },
	{ __NR_select, RESTART_WRITABLE, 4, "fs/select.c, poll_select_finish: -ERESTARTNOHAND" },
	{ __NR_pselect6, RESTART_WRITABLE, 4, "fs/select.c, poll_select_finish: -ERESTARTNOHAND" },
	{ __NR_nanosleep, RESTART_NULL, 1, "kernel/time/hrtimer.c, do_nanosleep: restart block" },
	{ __NR_clock_nanosleep, RESTART_NULL_ABS, 3,
	  "kernel/time/hrtimer.c, hrtimer_nanosleep: restart block, -ERESTARTNOHAND" },
	{ __NR_read, RESTART_QUIET_FD, 0,
	  "fs/pipe.c, fs/eventfd.c, fs/timerfd.c, fs/signalfd.c: -ERESTARTSYS" },
};

const struct restart *restart__find(int call)
{
	for (size_t i = 0; i < ARRAY_SIZE(restarts); i++)
		if (restarts[i].call == call)
			return &restarts[i];
	return NULL;
}

/* Returns true if argument 0 is one of the quiet descriptors. No file can have these names, as a
 * path begins with '/'. */
static bool is_quiet_fd(const struct restart_wait *wait)
{
	static const char *const kinds[] = { "pipe:[", "anon_inode:[eventfd]",
					     "anon_inode:[timerfd]", "anon_inode:[signalfd]" };
	char path[64], kind[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/fd/%d", wait->pid, wait->tid,
		 (int)wait->args[0]);
	n = readlink(path, kind, sizeof(kind) - 1);
	if (n <= 0)
		return false;
	kind[n] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strncmp(kind, kinds[i], strlen(kinds[i])))
			return true;
	return false;
}

bool restart__is_invisible(const struct restart_wait *wait)
{
	const struct restart *row = restart__find(wait->call);
	uint64_t arg;

	if (!row)
		return wait->call == THREAD_NO_CALL;
	arg = wait->args[row->arg];
	switch (row->rule) {
	case RESTART_ALWAYS:
		return true;
	case RESTART_NULL:
		return !arg;
	case RESTART_NULL_ABS:
		return !arg || wait->args[1] & TIMER_ABSTIME;
	case RESTART_WRITABLE:
		return !arg || wait->is_writable(wait->ctx, arg, sizeof(struct timespec));
	case RESTART_QUIET_FD:
		return is_quiet_fd(wait);
	}
	return false;
}

bool restart__may_repeat(int64_t call)
{
	static const short calls[] = { __NR_epoll_wait,	   __NR_epoll_pwait,	 __NR_epoll_pwait2,
				       __NR_semop,	   __NR_semtimedop,	 __NR_io_getevents,
				       __NR_io_pgetevents, __NR_rt_sigtimedwait, __NR_recvfrom,
				       __NR_recvmsg,	   __NR_accept,		 __NR_accept4,
				       __NR_connect,	   __NR_sendto,		 __NR_sendmsg };

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i] == call)
			return true;
	return false;
}
