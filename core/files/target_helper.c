// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/files/target_helper.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/maps_line.h"
#include "core/base/stop.h"
#include "core/base/util.h"

/* Timeouts for the next message, and for the whole request. Time lost to timeouts is charged to an
 * allowance, so that many unresponsive places cost little more than one.
 *
 * The timeouts limit the time in which the helper waits for a file system. Time in which the helper
 * is runnable without a CPU, or is stopped, reveals nothing about the file system. Up to
 * IDLE_MAX_MS of such time do not count: on a loaded machine a new process may not run for a
 * second. */
#define WAIT_MAX_MS	500
#define WAIT_MIN_MS	10
#define SIGNAL_WAIT_MS	100 /* after a signal */
#define LOOK_MS		20  /* interval of the checks of the stop and of the helper */
#define WHOLE_MAX_MS	4000
#define ALLOWANCE_MS	1000
#define REFILL_PER_CENT 2
#define NSEC_PER_MS	1000000ULL
#define IDLE_MAX_MS	30000

/* for tests in an emulated machine, where everything takes long and nothing hangs */
#define PATIENT	   "BRAID_TEST_PATIENT"
#define PATIENT_MS 600000

/* killed helpers that have not exited yet, as they wait in the kernel */
#define STUCK_MAX 64

static struct {
	pid_t owner; /* process that owns this state; a forked process does not */
	pid_t pid;   /* 0: no helper runs */
	int fd;
	pid_t stuck[STUCK_MAX];
	size_t n_stuck;
	int64_t allowance_ms;
	uint64_t refilled_ns;
} helper = { .allowance_ms = ALLOWANCE_MS };

/* --- messages --- */

union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int target_helper__send(int socket, const void *bytes, size_t n, int fd)
{
	struct iovec part = { .iov_base = (void *)bytes, .iov_len = n };
	union control control = { .head = { .cmsg_len = CMSG_LEN(sizeof(fd)),
					    .cmsg_level = SOL_SOCKET,
					    .cmsg_type = SCM_RIGHTS } };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t sent;

	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	do
		sent = sendmsg(socket, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : (int)sent;
}

int target_helper__receive(int socket, void *bytes, size_t n, int *ret_fd)
{
	struct iovec part = { .iov_base = bytes, .iov_len = n };
	union control control;
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *head;
	ssize_t got;

	*ret_fd = -1;
	do
		got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	head = CMSG_FIRSTHDR(&message);
	if (head && head->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(head), sizeof(*ret_fd));
	return (int)got;
}

/* --- the process --- */

/* Unmaps memory that is shared with the kernel or with other processes: a mapping of a BPF map
 * prolongs its life. */
static void unmap_shared(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct maps_line mapping;
	char *line = NULL;
	size_t size = 0;

	while (maps && getline(&line, &size, maps) > 0)
		if (maps_line__parse(line, &mapping) && mapping.perms[3] == 's')
			munmap((void *)(uintptr_t)mapping.start, mapping.end - mapping.start);
	free(line);
	if (maps)
		fclose(maps);
}

/* Releases everything that is shared with the parent, except @fd. */
static void hold_only(int fd)
{
	if (fd > 0)
		close_range(0, fd - 1, 0);
	close_range(fd + 1, ~0U, 0);
	unmap_shared();
}

static void __attribute__((noreturn))
run_child(const struct target_helper_program *program, int fd, pid_t parent)
{
	hold_only(fd);
	prctl(PR_SET_NAME, program->name);
	if (!program->cleans_up)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!program->cleans_up && getppid() != parent)
		_exit(0);
	program->run(program->ctx, fd);
}

int target_helper__start(const struct target_helper_program *program, pid_t *ret_pid, int *ret_fd)
{
	pid_t parent = getpid(), pid;
	sigset_t all, old;
	int fds[2], code;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = fork();
	code = pid < 0 ? -errno : 0;
	if (!pid)
		run_child(program, fds[1], parent);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	close(fds[1]);
	if (code) {
		close(fds[0]);
		return code;
	}
	*ret_pid = pid;
	*ret_fd = fds[0];
	return 0;
}

static void reap_stuck(void)
{
	size_t i = 0;

	while (i < helper.n_stuck) {
		if (waitpid(helper.stuck[i], NULL, WNOHANG) == 0)
			i++;
		else
			helper.stuck[i] = helper.stuck[--helper.n_stuck];
	}
}

static int start_helper(void)
{
	static const struct target_helper_program files = { .name = "braid-files",
							    .run = target_server__run };

	if (helper.owner != getpid()) {
		helper.owner = getpid();
		helper.pid = 0;
		helper.n_stuck = 0;
	}
	if (helper.pid)
		return 0;
	reap_stuck();
	if (helper.n_stuck == STUCK_MAX)
		return -ETIMEDOUT;
	return target_helper__start(&files, &helper.pid, &helper.fd);
}

static void give_up(void)
{
	kill(helper.pid, SIGKILL);
	close(helper.fd);
	helper.stuck[helper.n_stuck++] = helper.pid;
	helper.pid = 0;
	reap_stuck();
}

/* --- waiting --- */

static int64_t patience_ms(int64_t usual_ms)
{
	return getenv(PATIENT) ? PATIENT_MS : usual_ms;
}

static int64_t allowed_ms(void)
{
	uint64_t now = now_ns();
	int64_t refill = (now - helper.refilled_ns) / NSEC_PER_MS * REFILL_PER_CENT / 100;

	if (refill) {
		helper.refilled_ns = now;
		helper.allowance_ms = min_of(helper.allowance_ms + refill, ALLOWANCE_MS);
	}
	return patience_ms(min_of(max_of(helper.allowance_ms / 2, WAIT_MIN_MS), WAIT_MAX_MS));
}

/* Returns true if the helper waits only for a CPU, or for SIGCONT. */
static bool helper_is_idle(void)
{
	char path[32], text[128] = "", *state;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", helper.pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	state = strrchr(text, ')'); /* after the name */
	return state && state[1] && strchr("RTt", state[2]);
}

/* Waits for an answer. Returns 0, -EINTR or -ETIMEDOUT. Extends the deadline *@whole_ns by the time
 * in which the helper only waited for a CPU or for SIGCONT. A requested stop (core/base/stop.h)
 * ends the wait within SIGNAL_WAIT_MS. */
static int wait_answer(uint64_t *whole_ns)
{
	struct pollfd polled = { .fd = helper.fd, .events = POLLIN };
	uint64_t now = now_ns(), began = now, looked, end_ns, idle_ns = 0;
	bool interrupted = false;

	end_ns = min_of(*whole_ns, now + allowed_ms() * NSEC_PER_MS);
	while (!polled.revents && now < end_ns) {
		looked = now;
		poll(&polled, 1, min_of((end_ns - now) / NSEC_PER_MS + 1, (uint64_t)LOOK_MS));
		now = now_ns();
		if (!interrupted && idle_ns < IDLE_MAX_MS * NSEC_PER_MS && helper_is_idle()) {
			idle_ns += now - looked;
			end_ns += now - looked;
		}
		if (!interrupted && stop__is_requested()) {
			interrupted = true;
			end_ns = min_of(end_ns, now + SIGNAL_WAIT_MS * NSEC_PER_MS);
		}
	}
	*whole_ns += idle_ns;
	if (polled.revents)
		return 0;
	helper.allowance_ms -=
		min_of((int64_t)((now - began - idle_ns) / NSEC_PER_MS), helper.allowance_ms);
	return interrupted ? -EINTR : -ETIMEDOUT;
}

/* Sends one request to a running helper. Returns -EPIPE if the helper died, before or after it
 * received the request. */
static int ask_once(const struct target_request *request, int fd, struct target_answer *ret,
		    int *ret_fd)
{
	size_t n = offsetof(struct target_request, path) + strlen(request->path) + 1;
	uint64_t end_ns = now_ns() + patience_ms(WHOLE_MAX_MS) * NSEC_PER_MS;
	int code = target_helper__send(helper.fd, request, n, fd), got;

	if (code < 0)
		return code;
	do {
		close_fd(ret_fd);
		code = wait_answer(&end_ns);
		got = code ? 0 : target_helper__receive(helper.fd, ret, sizeof(*ret), ret_fd);
		if (!code && got != sizeof(*ret))
			code = !got || got == -ECONNRESET ? -EPIPE : -EIO;
	} while (!code && ret->code == EINPROGRESS);
	return code;
}

int target_helper__ask(const struct target_request *request, int fd, struct target_answer *ret,
		       int *ret_fd)
{
	int code = -EPIPE;

	*ret_fd = -1;
	for (int tries = 0; code == -EPIPE && tries < 2;
	     tries++) { /* another process may have killed the helper */
		code = start_helper();
		if (code)
			return code;
		code = ask_once(request, fd, ret, ret_fd);
		if (code >= 0)
			return ret->code;
		close_fd(ret_fd);
		give_up();
	}
	return code;
}
