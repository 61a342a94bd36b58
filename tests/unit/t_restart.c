// SPDX-License-Identifier: GPL-2.0-or-later
/* A followed process is left at the end of its time only while it cannot notice the stop. That is
 * decided by the table of core/target/restart.c, which has the arguments of the calls. */
#include "core/target/restart.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/target/hold.h"
#include "core/target/threads.h"
#include "tests/tap.h"

#define WAIT_MS 10000

static const struct timespec minutes = { 600, 0 };
static struct timespec left;
static int pipes[2], epoll;
static struct pollfd polled = { .events = POLLIN };
static struct epoll_event event;

static const struct {
	const char *name;
	long args[7];
	bool is_left;
} waits[] = {
	{ "pause", { SYS_pause }, true },
	{ "poll", { SYS_poll, (long)&polled, 1, -1 }, true },
	{ "ppoll that can write the rest",
	  { SYS_ppoll, (long)&polled, 1, (long)&left, 0, 8 },
	  true },
	{ "ppoll that cannot", { SYS_ppoll, (long)&polled, 1, (long)&minutes, 0, 8 }, false },
	{ "nanosleep without the rest", { SYS_nanosleep, (long)&minutes, 0 }, true },
	{ "nanosleep with the rest", { SYS_nanosleep, (long)&minutes, (long)&left }, false },
	{ "epoll_wait", { SYS_epoll_wait, 4, (long)&event, 1, -1 }, false },
	{ "read of a pipe", { SYS_read, 3, (long)&left, 1 }, true },
};

/* Starts a process with descriptors 3 (a pipe that stays empty) and 4 (an epoll instance). */
static pid_t start(const long *args)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	dup2(pipes[0], 3);
	dup2(epoll, 4);
	polled.fd = 3;
	left = minutes;
	errno = 0;
	syscall(args[0], args[1], args[2], args[3], args[4], args[5], args[6]);
	_exit(errno ? errno : 1);
}

/* Waits until the process is in the call @call. An interrupted call may continue as
 * restart_syscall. */
static bool wait_for(pid_t pid, long call)
{
	struct thread_now now;

	for (int i = 0; i < WAIT_MS; i++, usleep(1000))
		if (thread__read(pid, pid, &now) && now.off_cpu && now.state == 'S' &&
		    (now.call == call || now.call == SYS_restart_syscall))
			return true;
	return false;
}

static void check(size_t i)
{
	pid_t pid = start(waits[i].args);
	struct hold hold;
	int status = -1;

	if (!ok(wait_for(pid, waits[i].args[0]), "%s: waits", waits[i].name) ||
	    !ok(!ptrace(PTRACE_SEIZE, pid, NULL, NULL), "%s: is traced", waits[i].name))
		return;
	hold__adopt(&hold, pid, now_ns() + 600 * NSEC_PER_SEC);
	hold__expire(&hold);
	is_int(hold.pid, pid, "%s: is not left before its time is over", waits[i].name);
	hold__adopt(&hold, pid, 0);
	hold__expire(&hold);
	is_int(!hold.pid, waits[i].is_left, "%s: is left", waits[i].name);
	ok(wait_for(pid, waits[i].args[0]), "%s: still waits", waits[i].name);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

int main(void)
{
	if (pipe2(pipes, O_CLOEXEC) || (epoll = epoll_create1(EPOLL_CLOEXEC)) < 0)
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++)
		check(i);
	return tap__done();
}
