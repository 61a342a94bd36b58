// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/util.h"

static void __attribute__((noreturn)) run_child(int go_fd, int error_fd, char *const *command)
{
	sigset_t none;
	char byte;
	int error;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (read(go_fd, &byte, 1) != 1)
		_exit(0); /* called off, or the profiler has died */
	execvp(command[0], command);
	error = errno;
	if (write(error_fd, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

int child__fork(struct child *child, char *const *command, struct err *err)
{
	int go[2] = { -1, -1 }, error[2] = { -1, -1 }, pid, code = 0;

	if (pipe2(go, O_CLOEXEC) || pipe2(error, O_CLOEXEC)) {
		code = err__set(err, -errno, "cannot make a pipe: %s", strerror(errno));
		goto out;
	}
	pid = fork();
	if (pid < 0) {
		code = err__set(err, -errno, "cannot fork: %s", strerror(errno));
		goto out;
	}
	if (!pid) {
		close(go[1]);
		run_child(go[0], error[1], command);
	}
	*child = (struct child) { .pid = pid, .go_fd = go[1], .error_fd = error[0] };
	go[1] = error[0] = -1;
out:
	close_fd(&go[0]);
	close_fd(&go[1]);
	close_fd(&error[0]);
	close_fd(&error[1]);
	return code;
}

/* Until it has executed the command (1) or ended (0). Signals that it gets meanwhile are its own.
 */
static int wait_exec(int pid)
{
	int status;

	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
			return 1;
		ptrace(PTRACE_CONT, pid, NULL, status >> 16 ? 0 : (void *)(long)WSTOPSIG(status));
	}
	return 0;
}

int child__exec(struct child *child, const char *name, struct err *err)
{
	int error = 0;
	ssize_t n;

	/* Where ptrace is forbidden (Yama) the command runs on at once, and its first samples may
	 * come before its tables. */
	child->held = !ptrace(PTRACE_SEIZE, child->pid, NULL, (void *)PTRACE_O_TRACEEXEC);
	if (write(child->go_fd, "g", 1) != 1)
		return err__set(err, -errno, "cannot start %s: %s", name, strerror(errno));
	close_fd(&child->go_fd);
	if (child->held && wait_exec(child->pid)) {
		close_fd(&child->error_fd);
		return 0;
	}
	n = read(child->error_fd, &error, sizeof(error));
	close_fd(&child->error_fd);
	if (!child->held && !n)
		return 0; /* closed by the exec */
	if (!child->held)
		waitpid(child->pid, NULL, 0);
	child->pid = 0;
	return err__set(err, n == sizeof(error) ? -error : -ECHILD, "cannot run %s: %s", name,
			n == sizeof(error) ? strerror(error) : "it has ended already");
}

void child__release(struct child *child)
{
	if (child->held)
		ptrace(PTRACE_DETACH, child->pid, NULL, NULL);
	child->held = false;
}

void child__done(struct child *child)
{
	if (child->pid && child->go_fd >= 0) {
		close_fd(&child->go_fd);
		waitpid(child->pid, NULL, 0);
	}
	if (child->pid)
		close_fd(&child->error_fd);
	child->pid = 0;
}
