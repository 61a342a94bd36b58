// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/util.h"

#define PATIENCE_MS 10000 /* limit of the time until perf attached its events */

struct peer {
	pid_t pid;
	int control, answers; /* pipes; perf-record(1), --control */
};

static void __attribute__((noreturn))
run_perf(pid_t target, uint32_t frequency_hz, int control, int answers, pid_t parent)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char hz[16], pid[16], pipes[48];
	sigset_t none;

	snprintf(hz, sizeof(hz), "%u", frequency_hz);
	snprintf(pid, sizeof(pid), "%d", target);
	snprintf(pipes, sizeof(pipes), "fd:%d,%d", control, answers);
	setpgid(0, 0); /* Ctrl-C must not reach perf */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	fcntl(control, F_SETFD, 0);
	fcntl(answers, F_SETFD, 0);
	execlp("perf", "perf", "record", "-g", "-e", "cpu-clock", "-F", hz, "-p", pid, "-o",
	       "/dev/null", "--delay", "-1", "--control", pipes, NULL);
	_exit(127);
}

/* Enables the events of perf, and waits for its acknowledgement. */
static int enable(const struct peer *peer, struct err *err)
{
	struct pollfd polled = { .fd = peer->answers, .events = POLLIN };
	struct sigaction ignore = { .sa_handler = SIG_IGN }, old;
	char answer[8] = "";
	ssize_t n;
	int ready;

	sigaction(SIGPIPE, &ignore, &old);
	n = write(peer->control, "enable\n", 7);
	sigaction(SIGPIPE, &old, NULL);
	do {
		ready = n == 7 ? poll(&polled, 1, PATIENCE_MS) : 0;
	} while (ready < 0 && errno == EINTR);
	if (ready == 1 && read(peer->answers, answer, sizeof(answer) - 1) >= 3 &&
	    !strncmp(answer, "ack", 3))
		return 0;
	return err__set(err, -ENOENT, "no working `perf record` on this machine");
}

int peer__start(pid_t pid, uint32_t frequency_hz, struct peer **ret_peer, struct err *err)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	int control[2] = { -1, -1 }, answers[2] = { -1, -1 }, ret = 0;
	pid_t parent = getpid();

	if (!peer || pipe2(control, O_CLOEXEC) || pipe2(answers, O_CLOEXEC))
		ret = err__set(err, -ENOMEM, "cannot start perf: no memory, or no files");
	if (!ret)
		peer->pid = fork();
	if (!ret && !peer->pid)
		run_perf(pid, frequency_hz, control[0], answers[1], parent);
	if (!ret && peer->pid < 0)
		ret = err__set(err, -errno, "cannot fork: %s", strerror(errno));
	close_fd(&control[0]);
	close_fd(&answers[1]);
	if (ret) {
		close_fd(&control[1]);
		close_fd(&answers[0]);
		free(peer);
		return ret;
	}
	peer->control = control[1];
	peer->answers = answers[0];
	ret = enable(peer, err);
	if (ret)
		peer__stop(peer);
	else
		*ret_peer = peer;
	return ret;
}

void peer__stop(struct peer *peer)
{
	if (!peer)
		return;
	kill(peer->pid, SIGINT);
	while (waitpid(peer->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close_fd(&peer->control);
	close_fd(&peer->answers);
	free(peer);
}
