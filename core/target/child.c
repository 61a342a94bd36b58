// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "core/base/privilege.h"
#include "core/base/util.h"

#define EXEC_POLL_MS 1000

static void __attribute__((noreturn))
run_child(int go_fd, int error_fd, const struct child_opts *opts, const struct sigaction *action)
{
	sigset_t none;
	char byte;
	int error;

	sigemptyset(&none);
	sigaction(SIGCHLD, action, NULL);
	if (read(go_fd, &byte, 1) != 1)
		_exit(0); /* cancelled, or the profiler has died */
	if (opts->files)
		setrlimit(RLIMIT_NOFILE, opts->files);
	/* Unblocks pending signals, which were sent to the command's process group. */
	sigprocmask(SIG_SETMASK, opts->mask ? opts->mask : &none, NULL);
	execvp(opts->command[0], opts->command);
	error = errno;
	if (write(error_fd, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

/* Opens the signalfd for SIGCHLD. Resets the action of SIGCHLD: if it is ignored, as the parent of
 * this process may have left it, the child's exit status is lost. */
static int watch_signals(struct child *child, struct err *err)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	child->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (child->signal_fd < 0)
		return err__set(err, -errno, "cannot watch the command: %s", strerror(errno));
	sigaction(SIGCHLD, &usual, &child->old_action);
	pthread_sigmask(SIG_BLOCK, &signals, &child->old_mask);
	return 0;
}

int child__fork(struct child *child, const struct child_opts *opts, struct err *err)
{
	int go[2] = { -1, -1 }, error[2] = { -1, -1 }, pid, ret = 0;

	*child = CHILD_NONE;
	ret = watch_signals(child, err);
	if (!ret && (pipe2(go, O_CLOEXEC) || pipe2(error, O_CLOEXEC)))
		ret = err__set(err, -errno, "cannot make a pipe: %s", strerror(errno));
	if (ret)
		goto out;
	pid = fork();
	if (pid < 0) {
		ret = err__set(err, -errno, "cannot fork: %s", strerror(errno));
		goto out;
	}
	if (!pid) {
		close(go[1]);
		run_child(go[0], error[1], opts, &child->old_action);
	}
	child->pid = pid;
	child->go_fd = go[1];
	child->error_fd = error[0];
	go[1] = error[0] = -1;
out:
	close_fd(&go[0]);
	close_fd(&go[1]);
	close_fd(&error[0]);
	close_fd(&error[1]);
	if (ret)
		child__done(child);
	return ret;
}

static bool raises(const char *path)
{
	struct stat st;

	return !access(path, X_OK) && !stat(path, &st) && S_ISREG(st.st_mode) &&
	       (st.st_mode & (S_ISUID | S_ISGID) ||
		getxattr(path, "security.capability", NULL, 0) > 0);
}

/* Returns true if the command's file raises privileges (setuid, setgid, capabilities). Finds the
 * file as execvp() does. */
static bool gets_privileges(const char *name)
{
	const char *dirs = getenv("PATH"), *end;
	char path[PATH_MAX];

	if (strchr(name, '/'))
		return raises(name);
	for (; dirs && *dirs; dirs = *end ? end + 1 : end) {
		end = strchrnul(dirs, ':');
		snprintf(path, sizeof(path), "%.*s/%s", (int)(end - dirs), dirs, name);
		if (!access(path, X_OK))
			return raises(path);
	}
	return false;
}

/* Waits until the child has executed the command, has failed to, or has ended. Returns 0; -EINTR:
 * @stop_fd is readable. The pipe reaches its end shortly before the exec is complete. */
static int wait_exec(struct child *child, int stop_fd)
{
	struct pollfd polled[] = { { .fd = stop_fd, .events = POLLIN },
				   { .fd = child->error_fd, .events = POLLIN },
				   { .fd = child->signal_fd, .events = POLLIN } };
	struct signalfd_siginfo info;
	enum hold_state state;

	for (;;) {
		state = hold__next(&child->hold);
		if (state == HOLD_EXECUTED)
			return 0;
		if (state == HOLD_OVER && (polled[1].revents || polled[1].fd < 0))
			return 0;
		if (polled[1].revents) /* no more data; the hold's state reports the end of the exec
					*/
			polled[1].fd = -1;
		while (read(child->signal_fd, &info, sizeof(info)) == sizeof(info))
			;
		if (poll(polled, ARRAY_SIZE(polled), EXEC_POLL_MS) < 0 && errno != EINTR)
			return -errno;
		if (polled[0].revents)
			return -EINTR;
	}
}

int child__exec(struct child *child, const char *name, int stop_fd, struct err *err)
{
	bool held, ended;
	int error, ret;

	/* Where ptrace is forbidden (Yama), the command runs on at once. So does a command that
	 * would lose privileges: the kernel grants none if the tracer could not trace everything.
	 * Its first samples may then precede its tables. */
	held = !(privilege__missing(1U << PRIVILEGE_PROCESSES) && gets_privileges(name)) &&
	       hold__seize(&child->hold, child->pid);
	if (write(child->go_fd, "g", 1) != 1)
		return err__set(err, -errno, "cannot start %s: %s", name, strerror(errno));
	close_fd(&child->go_fd);
	ret = wait_exec(child, stop_fd);
	if (ret)
		return err__set(err, ret, "stopped before %s was executed", name);
	ended = held && !child->hold.pid;
	if (read(child->error_fd, &error, sizeof(error)) != sizeof(error))
		error = ended ? ECHILD : 0; /* EOF at the exec or at the end */
	close_fd(&child->error_fd);
	if (!error)
		return 0;
	waitpid(child->pid, NULL, 0);
	child->pid = 0;
	return err__set(err, -error, "cannot run %s: %s", name,
			error == ECHILD ? "it has already ended" : strerror(error));
}

void child__kill(struct child *child)
{
	if (child->pid) {
		kill(child->pid, SIGKILL);
		while (waitpid(child->pid, NULL, __WALL) < 0 && errno == EINTR)
			;
	}
	child->pid = 0;
	child->hold = (struct hold) {};
	child__done(child);
}

void child__done(struct child *child)
{
	hold__release(&child->hold);
	close_fd(&child->go_fd);
	close_fd(&child->error_fd);
	if (child->signal_fd < 0)
		return;
	close_fd(&child->signal_fd);
	pthread_sigmask(SIG_SETMASK, &child->old_mask, NULL);
	sigaction(SIGCHLD, &child->old_action, NULL);
}
