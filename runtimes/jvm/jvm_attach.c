// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_attach.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/files/target_helper.h"
#include "runtimes/jvm/jvm_socket.h"

#define GRACE_MS    2000 /* after the timeout, for a helper that blocks in the kernel */
#define LEAVE_MS    1000 /* for a cancelled helper to end */
#define NSEC_PER_MS 1000000ULL

struct answer {
	int code;
	struct err err;
};

struct helper_ctx {
	struct jvm_request request;
	unsigned timeout_ms;
};

struct jvm_attach {
	int helper; /* its process id; 0: reaped */
	int fd;	    /* a socket; the helper sends its answer on it, or just closes it */
	uint32_t pid;
	uint64_t end_ns; /* CLOCK_MONOTONIC; the request ends then, whatever the helper does */
	struct answer answer;
};

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

/* Runs the request and sends the answer on @fd. The helper learns from the end of this socket
 * that its caller has stopped waiting, also if the parent was killed. A signal on the parent's
 * death would come when the parent's thread ends, and is cleared when the user changes. It would
 * also leave files behind. Signals from a terminal are blocked. The alarm ends a helper that
 * blocks, since a file system of the JVM's user may block forever. */
static void __attribute__((noreturn)) run_helper(void *ctx, int fd)
{
	struct helper_ctx *helper = ctx;
	struct answer answer = {};
	sigset_t all_but_alarm;

	signal(SIGALRM, SIG_DFL);
	sigfillset(&all_but_alarm);
	sigdelset(&all_but_alarm, SIGALRM);
	sigprocmask(SIG_SETMASK, &all_but_alarm, NULL);
	alarm(helper->timeout_ms / 1000 + GRACE_MS / 1000);
	helper->request.caller_fd = fd;
	answer.code = jvm_request__run(&helper->request, &answer.err);
	send(fd, &answer, sizeof(answer), MSG_NOSIGNAL);
	_exit(0);
}

int jvm_attach__start(uint32_t pid, const char *command, unsigned timeout_ms,
		      struct jvm_attach **ret)
{
	struct jvm_attach *attach = calloc(1, sizeof(*attach));
	struct helper_ctx helper = { .request = { .pid = pid, .command = command },
				     .timeout_ms = timeout_ms };
	const struct target_helper_program program = {
		.name = "braid-jvm", .run = run_helper, .ctx = &helper, .cleans_up = true
	};
	int code;

	if (!attach)
		return -ENOMEM;
	helper.request.end_ns = monotonic_ns() + timeout_ms * NSEC_PER_MS;
	code = target_helper__start(&program, &attach->helper, &attach->fd);
	if (code) {
		free(attach);
		return code;
	}
	attach->pid = pid;
	attach->end_ns = helper.request.end_ns + GRACE_MS * NSEC_PER_MS;
	*ret = attach;
	return 0;
}

int jvm_attach__fd(const struct jvm_attach *attach)
{
	return attach->fd;
}

static int wait_fd(int fd, uint64_t end_ns)
{
	struct pollfd polled = { .fd = fd, .events = POLLIN };
	uint64_t now;
	int n;

	do {
		now = monotonic_ns();
		n = poll(&polled, 1, now < end_ns ? (end_ns - now) / NSEC_PER_MS + 1 : 0);
	} while (n < 0 && errno == EINTR);
	return n;
}

bool jvm_attach__is_over(const struct jvm_attach *attach)
{
	return !attach->helper || monotonic_ns() >= attach->end_ns || wait_fd(attach->fd, 0) > 0;
}

/* Cancels a helper that still runs. The JVM's user can stop the helper, which is then killed. A
 * helper that blocks in a file system does not die even then; it is not waited for. */
static void end_helper(struct jvm_attach *attach)
{
	int pidfd;

	if (!attach->helper)
		return;
	pidfd = syscall(SYS_pidfd_open, attach->helper, 0);
	shutdown(attach->fd, SHUT_WR);
	wait_fd(attach->fd, monotonic_ns() + LEAVE_MS * NSEC_PER_MS);
	kill(attach->helper, SIGKILL); /* it has answered and is done, or does not end by itself */
	wait_fd(pidfd, monotonic_ns() + LEAVE_MS * NSEC_PER_MS);
	waitpid(attach->helper, NULL, WNOHANG);
	close_fd(&pidfd);
	attach->helper = 0;
}

int jvm_attach__finish(struct jvm_attach *attach, struct err *err)
{
	struct answer *answer = &attach->answer;

	if (attach->helper) {
		wait_fd(attach->fd, attach->end_ns);
		if (recv(attach->fd, answer, sizeof(*answer), MSG_DONTWAIT) != sizeof(*answer))
			answer->code = err__set(
				&answer->err, -ETIMEDOUT,
				"PID %u: braid's process that queries the JVM hangs, or was killed",
				attach->pid);
		end_helper(attach);
	}
	if (err)
		*err = answer->err;
	return answer->code;
}

void jvm_attach__free(struct jvm_attach *attach)
{
	if (!attach)
		return;
	end_helper(attach);
	close(attach->fd);
	free(attach);
}
