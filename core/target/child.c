// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "core/base/privilege.h"
#include "core/base/util.h"

static void __attribute__((noreturn))
run_child(int go_fd, int error_fd, char *const *command, const struct rlimit *files)
{
	sigset_t none;
	char byte;
	int error;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (read(go_fd, &byte, 1) != 1)
		_exit(0); /* called off, or the profiler has died */
	if (files)
		setrlimit(RLIMIT_NOFILE, files);
	execvp(command[0], command);
	error = errno;
	if (write(error_fd, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

int child__fork(struct child *child, char *const *command, const struct rlimit *files,
		struct err *err)
{
	int go[2] = { -1, -1 }, error[2] = { -1, -1 }, pid, ret = 0;

	if (pipe2(go, O_CLOEXEC) || pipe2(error, O_CLOEXEC)) {
		ret = err__set(err, -errno, "cannot make a pipe: %s", strerror(errno));
		goto out;
	}
	pid = fork();
	if (pid < 0) {
		ret = err__set(err, -errno, "cannot fork: %s", strerror(errno));
		goto out;
	}
	if (!pid) {
		close(go[1]);
		run_child(go[0], error[1], command, files);
	}
	*child = (struct child) { .pid = pid, .go_fd = go[1], .error_fd = error[0] };
	go[1] = error[0] = -1;
out:
	close_fd(&go[0]);
	close_fd(&go[1]);
	close_fd(&error[0]);
	close_fd(&error[1]);
	return ret;
}

static bool raises(const char *path)
{
	struct stat st;

	return !access(path, X_OK) && !stat(path, &st) && S_ISREG(st.st_mode) &&
	       (st.st_mode & (S_ISUID | S_ISGID) ||
		getxattr(path, "security.capability", NULL, 0) > 0);
}

/* Would the command get privileges by its file (setuid, capabilities)? As execvp finds it. */
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
	bool ended;
	int error;

	/* Where ptrace is forbidden (Yama), or would take privileges from the command, as the
	 * kernel gives none to what is traced by a process that could not trace everything, the
	 * command runs on at once, and its first samples may come before its tables. */
	child->held = !(privilege__missing(1U << PRIVILEGE_PROCESSES) && gets_privileges(name)) &&
		      !ptrace(PTRACE_SEIZE, child->pid, NULL, (void *)PTRACE_O_TRACEEXEC);
	if (write(child->go_fd, "g", 1) != 1)
		return err__set(err, -errno, "cannot start %s: %s", name, strerror(errno));
	close_fd(&child->go_fd);
	ended = child->held && !wait_exec(child->pid);
	if (read(child->error_fd, &error, sizeof(error)) != sizeof(error))
		error = ended ? ECHILD : 0; /* closed by the exec, or by its end */
	close_fd(&child->error_fd);
	if (!error)
		return 0;
	if (!ended)
		waitpid(child->pid, NULL, 0);
	child->pid = 0;
	return err__set(err, -error, "cannot run %s: %s", name,
			error == ECHILD ? "it has ended already" : strerror(error));
}

/* AT_ENTRY of the auxiliary vector; 0: unknown. */
static uint64_t entry_of(int pid)
{
	uint64_t pair[2], entry = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	file = fopen(path, "re");
	while (file && !entry && fread(pair, sizeof(pair), 1, file) == 1)
		if (pair[0] == AT_ENTRY)
			entry = pair[1];
	if (file)
		fclose(file);
	return entry;
}

#define INT3 0xcc

/* The word of the process's code at `address`; `ret`: what was there. */
static int set_breakpoint(int pid, uint64_t address, long *ret)
{
	errno = 0;
	*ret = ptrace(PTRACE_PEEKTEXT, pid, address, NULL);
	return errno || ptrace(PTRACE_POKETEXT, pid, address, (*ret & ~0xffL) | INT3);
}

/* The process is to execute what it was stopped at. */
static void remove_breakpoint(int pid, uint64_t address, long word)
{
	ptrace(PTRACE_POKETEXT, pid, address, word);
	ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.rip), address);
}

enum stopped { ENDED /* it is not reaped yet */, ENTERED, EXECUTED /* another program */ };

/* Until it stops behind the breakpoint at `entry`, which may never come. */
static enum stopped wait_entry(int pid, uint64_t entry)
{
	siginfo_t info;
	uint64_t pc;
	int status;

	for (;;) {
		if (waitid(P_PID, pid, &info, WEXITED | WSTOPPED | WNOWAIT)) {
			if (errno == EINTR)
				continue;
			return ENDED;
		}
		if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
			return ENDED;
		waitpid(pid, &status, 0);
		pc = ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user, regs.rip), NULL);
		if (WSTOPSIG(status) == SIGTRAP && pc == entry + 1)
			return ENTERED;
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
			return EXECUTED;
		ptrace(PTRACE_CONT, pid, NULL, status >> 16 ? 0 : (void *)(long)WSTOPSIG(status));
	}
}

void child__run_to_entry(struct child *child)
{
	/* If the profiler dies now, the command does, too: the breakpoint would end it anyway. */
	long options = PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC, word;
	enum stopped stopped = EXECUTED;
	uint64_t entry;

	if (!child->held || ptrace(PTRACE_SETOPTIONS, child->pid, NULL, (void *)options))
		return;
	/* The breakpoint is in the process's own copy of the page, as debuggers do it: there are
	 * virtual machines on which debug registers can be set, and never fire. */
	while (stopped == EXECUTED && (entry = entry_of(child->pid)) &&
	       !set_breakpoint(child->pid, entry, &word)) {
		ptrace(PTRACE_CONT, child->pid, NULL, NULL);
		stopped = wait_entry(child->pid, entry);
	}
	child->held = stopped != ENDED;
	if (stopped == ENTERED)
		remove_breakpoint(child->pid, entry, word);
	if (child->held)
		ptrace(PTRACE_SETOPTIONS, child->pid, NULL, NULL);
}

void child__release(struct child *child)
{
	if (child->held)
		ptrace(PTRACE_DETACH, child->pid, NULL, NULL);
	child->held = false;
}

void child__kill(struct child *child)
{
	if (!child->pid)
		return;
	kill(child->pid, SIGKILL);
	while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close_fd(&child->go_fd);
	close_fd(&child->error_fd);
	*child = CHILD_NONE;
}
