// SPDX-License-Identifier: GPL-2.0-or-later
/* Metrics are answered however long the machine has run: here, in a time namespace. */
#include "core/session/metrics_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/util.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

/* How long it has run, in ms, when what is left of 64 bits of nanoseconds is a multiple of 2^32 ms.
 */
#define WRAPS_MS (UINT64_MAX / 1000000 % (1ULL << 32))

static int set_clock(uint64_t ms)
{
	char text[64];
	int fd, n;

	if (unshare(CLONE_NEWTIME) && unshare(CLONE_NEWUSER | CLONE_NEWTIME))
		return -errno;
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	n = snprintf(text, sizeof(text), "monotonic %lld 0\n",
		     (long long)(ms - now_ns() / 1000000) / 1000);
	n = fd < 0 || write(fd, text, n) != n ? -errno : 0;
	close_fd(&fd);
	return n;
}

/* 0: there is an answer. */
static int ask(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char answer[64] = "";
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), ret;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	ret = connect(fd, (const struct sockaddr *)&address, sizeof(address)) ||
	      write(fd, "GET / HTTP/1.1\r\n\r\n", 18) != 18 ||
	      recv(fd, answer, 15, MSG_WAITALL) != 15 || strcmp(answer, "HTTP/1.1 200 OK") != 0;
	close_fd(&fd);
	return ret;
}

/* In the namespace. */
static int serve(const char *path)
{
	struct metrics_socket *metrics;
	int ret = metrics_socket__open(path, &metrics, NULL);

	if (ret)
		return 2;
	alarm(60);
	usleep(2000000); /* it would wrap in a second and a half at most */
	ret = ask(path);
	metrics_socket__free(metrics);
	return ret;
}

int main(void)
{
	char path[108];
	int status;
	pid_t pid;

	workdir__make();
	snprintf(path, sizeof(path), "%s/metrics", workdir);
	if (set_clock(WRAPS_MS - 500)) {
		tap__skip("not permitted here", "a time namespace");
		return tap__done();
	}
	pid = fork();
	if (!pid)
		_exit(serve(path));
	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && !WEXITSTATUS(status), "an answer after %llu days",
	   (unsigned long long)(WRAPS_MS / 86400000));
	return tap__done();
}
