/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_LONG_LIVE_H
#define BRAID_TESTS_LONG_LIVE_H

/* Programs that run as traced children and are stopped at any point. */

#include "tests/stopped.h"

/* Starts the program, which is searched for in PATH if @path has no slash, and waits for its first
 * line. Returns -1 if there is none. Then closes the pipe. */
static inline pid_t live__start(const char *path, char *const *argv)
{
	char line[16] = "";
	int out[2];
	pid_t pid;
	FILE *in;

	if (pipe(out) != 0)
		return -1;
	pid = fork();
	if (!pid) {
		dup2(out[1], STDOUT_FILENO);
		close(out[0]);
		close(out[1]);
		execvp(path, argv);
		_exit(1);
	}
	close(out[1]);
	in = fdopen(out[0], "r");
	if (!fgets(line, sizeof(line), in) ||
	    ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_EXITKILL) != 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	fclose(in);
	return pid;
}

/* Ends the process. Its traced threads must be waited for before it. */
static inline void live__end(pid_t pid)
{
	int status;
	pid_t tid;

	kill(pid, SIGKILL);
	do {
		tid = waitpid(-1, &status, __WALL);
	} while (tid > 0 && (tid != pid || WIFSTOPPED(status)));
}

/* Forwards signals until the thread stops because of a request. */
static inline bool live__wait(pid_t tid, int request)
{
	int status, signo;

	while (waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status)) {
		signo = WSTOPSIG(status);
		if (status >> 16 || signo == SIGTRAP)
			return true;
		ptrace(request, tid, NULL, (void *)(intptr_t)signo);
	}
	return false;
}

static inline bool live__step(pid_t tid, int n)
{
	for (int i = 0; i < n; i++) {
		ptrace(PTRACE_SINGLESTEP, tid, NULL, NULL);
		if (!live__wait(tid, PTRACE_SINGLESTEP))
			return false;
	}
	return true;
}

static inline bool live__stop(pid_t tid)
{
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	return live__wait(tid, PTRACE_CONT);
}

/* Lets a stopped thread run, and stops it elsewhere, a few instructions further on. */
static inline bool live__move(pid_t tid, int steps)
{
	ptrace(PTRACE_CONT, tid, NULL, NULL);
	return live__stop(tid) && live__step(tid, steps);
}

#endif
