// SPDX-License-Identifier: GPL-2.0-or-later
/* Metrics are answered at any uptime of the machine, tested in a time namespace. */
#include "core/service/metrics_socket.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
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

/* Uptime in ms at which the time left until 64 bits of nanoseconds overflow is a multiple of 2^32
 * ms. */
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

/* Requests the metrics. Returns 0 if there is an answer. */
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

/* Runs in the namespace. */
static int serve(const char *path)
{
	struct metrics_socket *metrics;
	int ret = metrics_socket__open(path, &metrics, NULL);

	if (ret)
		return 2;
	alarm(60);
	usleep(2000000); /* the time would wrap after 1.5 s at most */
	ret = ask(path);
	metrics_socket__free(metrics);
	return ret;
}

/* Leaves a socket without a listener. */
static void leave_dead(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)))
		exit(1);
	close(fd);
}

static unsigned count_files(void)
{
	DIR *dir = opendir(workdir);
	unsigned n = 0;

	for (struct dirent *entry; dir && (entry = readdir(dir));)
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	if (dir)
		closedir(dir);
	return n;
}

/* Several processes that start at once. */
struct contest {
	int begin[2], opened[2], end[2]; /* pipes; closing the first or last is a signal */
};

/* Claims the name when the contest begins, and owns it to the end. Returns 0 if readers were
 * answered until then, 1 if they were not, and 2 if the process did not get the name. */
static int contend(const char *path, const struct contest *contest)
{
	struct metrics_socket *metrics;
	bool opened;
	int ret = 0;
	char byte;

	(void)!read(contest->begin[0], &byte, 1);
	opened = !metrics_socket__open(path, &metrics, NULL);
	if (write(contest->opened[1], "", 1) != 1 || !opened)
		return 2;
	(void)!read(contest->end[0], &byte, 1);
	ret = ask(path);
	metrics_socket__free(metrics);
	return ret;
}

static void close_pipe(int pipe[2])
{
	close_fd(&pipe[0]);
	close_fd(&pipe[1]);
}

/* Starts @n processes at once over a socket of a run that was killed. Counts their statuses in
 * @counts. */
static void run_contest(const char *path, unsigned n, unsigned counts[3])
{
	struct contest contest;
	char byte;
	int status;

	leave_dead(path);
	if (pipe(contest.begin) || pipe(contest.opened) || pipe(contest.end))
		exit(1);
	for (unsigned i = 0; i < n; i++) {
		if (fork())
			continue;
		close_fd(&contest.begin[1]);
		close_fd(&contest.end[1]);
		_exit(contend(path, &contest));
	}
	close_pipe(contest.begin);
	for (unsigned i = 0; i < n; i++)
		if (read(contest.opened[0], &byte, 1) != 1)
			exit(1);
	close_pipe(contest.opened);
	close_pipe(contest.end);
	while (wait(&status) > 0)
		counts[WIFEXITED(status) ? WEXITSTATUS(status) : 1]++;
}

static void test_race(const char *path)
{
	enum { ROUNDS = 50, N = 8 };
	unsigned counts[3] = {};

	for (int round = 0; round < ROUNDS; round++)
		run_contest(path, N, counts);
	ok(counts[0] == ROUNDS && counts[2] == ROUNDS * (N - 1),
	   "%d times %d start at once: %u have the name, %u are refused, %u are not answered",
	   ROUNDS, N, counts[0], counts[2], counts[1]);
	is_int(count_files(), 0, "nothing is left in the directory");
}

static void test_names(const char *path)
{
	struct metrics_socket *first, *second;
	char longest[108];
	struct stat st;

	ok(!metrics_socket__open(path, &first, NULL), "a socket");
	ok(!stat(path, &st) && (st.st_mode & 0777) == 0600, "is its owner's");
	is_int(metrics_socket__open(path, &second, NULL), -EADDRINUSE, "a name that is in use");
	is_int(ask(path), 0, "the first one answers");
	metrics_socket__free(first);
	ok(stat(path, &st) && errno == ENOENT, "the name is gone");
	if (symlink("/dev/null", path))
		exit(1);
	is_int(metrics_socket__open(path, &second, NULL), -ENOTSOCK, "a link is not replaced");
	unlink(path);
	snprintf(longest, sizeof(longest), "%s/%0100d", workdir, 0);
	ok(!metrics_socket__open(longest, &first, NULL) && !ask(longest),
	   "the longest name that a socket can have");
	metrics_socket__free(first);
	is_int(count_files(), 0, "and nothing is left");
}

int main(void)
{
	char path[108];
	int status;
	pid_t pid;

	workdir__make();
	snprintf(path, sizeof(path), "%s/metrics", workdir);
	test_names(path);
	test_race(path);
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
