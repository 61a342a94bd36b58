/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_JVM_FAKE_H
#define BRAID_TESTS_JVM_FAKE_H

/* A process that plays a JVM for the attach protocol. It listens on the socket, or waits for
 * SIGQUIT. */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/util.h"
#include "runtimes/jvm/jvm_attach.h"
#include "tests/tap.h"

#define LONG_MS	 30000 /* timeout that no test reaches */
#define SHORT_MS 1000  /* reached without an answer; enough for all steps before */

/* Instructions for the fake JVM, and the request that it received. */
struct play {
	const char *reply;
	bool keeps_open, endless;
	/* for a fake JVM that is started by SIGQUIT */
	bool catches, dispatches, starts, opens;
	uid_t uid; /* user that the fake JVM switches to; 0: the test's user */
	gid_t gid;

	char request[64];
	int request_len;
	int quits; /* number of SIGQUITs received */
	bool had_trigger;
	struct ucred peer; /* credentials of the requester */
};

static struct play *play; /* shared with the fake JVM */

static inline void fake__init(void)
{
	play = mmap(NULL, sizeof(*play), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (play == MAP_FAILED)
		exit(1);
}

static inline const char *fake__path(const char *name, int pid)
{
	static char paths[4][64];
	static int next;
	char *path = paths[next++ % ARRAY_SIZE(paths)];

	snprintf(path, sizeof(paths[0]), "/tmp/%s%d", name, pid);
	return path;
}

static inline int fake__listen(int pid)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, fake__path(".java_pid", pid));
	unlink(address.sun_path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 5)) {
		perror(address.sun_path);
		_exit(1);
	}
	return fd;
}

static inline void __attribute__((noreturn)) fake__serve(int listener)
{
	static char junk[65536];
	socklen_t len = sizeof(play->peer);
	ssize_t n;

	signal(SIGPIPE, SIG_IGN);
	memset(junk, '0', sizeof(junk));
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &play->peer, &len);
		n = read(fd, play->request, sizeof(play->request));
		play->request_len = n;
		if (write(fd, play->reply, strlen(play->reply)) < 0)
			_exit(1);
		while (play->endless && write(fd, junk, sizeof(junk)) > 0)
			;
		if (!play->keeps_open)
			close(fd);
	}
}

static inline void fake__on_quit(int number)
{
	(void)number;
	play->quits++;
	play->had_trigger = !access(fake__path(".attach_pid", getpid()), F_OK);
}

static inline void *fake__thread(void *name)
{
	prctl(PR_SET_NAME, name);
	while (pause())
		;
	return NULL;
}

static inline void __attribute__((noreturn)) fake__wait_quit(void)
{
	sigset_t none;

	sigemptyset(&none);
	while (!play->quits || !play->opens)
		sigsuspend(&none);
	fake__serve(fake__listen(getpid()));
}

static inline void __attribute__((noreturn)) fake__run(int ready_fd, bool with_socket)
{
	pthread_t thread;
	sigset_t quit;
	int listener;

	/* A killed JVM that had this process ID leaves its socket. */
	unlink(fake__path(".java_pid", getpid()));
	unlink(fake__path(".attach_pid", getpid()));
	if (play->uid && (setgroups(0, NULL) || setresgid(play->gid, play->gid, play->gid) ||
			  setresuid(play->uid, play->uid, play->uid)))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	listener = with_socket ? fake__listen(getpid()) : -1;
	sigemptyset(&quit);
	sigaddset(&quit, SIGQUIT);
	sigprocmask(SIG_BLOCK, &quit, NULL); /* but not where it is waited for */
	if (play->dispatches)
		prctl(PR_SET_NAME, "Signal Dispatcher");
	if (play->starts)
		pthread_create(&thread, NULL, fake__thread, (void *)"Service Thread");
	if (play->catches)
		signal(SIGQUIT, fake__on_quit);
	if (write(ready_fd, "r", 1) != 1)
		_exit(1);
	if (with_socket)
		fake__serve(listener);
	fake__wait_quit();
}

/* Starts a fake JVM that follows `play`. It is set up on return. */
static inline int fake__start(bool with_socket)
{
	int ready[2], pid;
	char byte;

	if (pipe2(ready, O_CLOEXEC))
		exit(1);
	play->quits = play->request_len = 0;
	play->had_trigger = false;
	pid = fork();
	if (!pid)
		fake__run(ready[1], with_socket);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		exit(1);
	close(ready[0]);
	return pid;
}

static inline void fake__end(int pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(fake__path(".java_pid", pid));
}

static inline bool fake__is_alive(int pid)
{
	return waitpid(pid, NULL, WNOHANG) == 0;
}

static inline int fake__ask(int pid, unsigned timeout_ms, struct err *err)
{
	struct jvm_attach *attach = NULL;
	int code = jvm_attach__start(pid, "Compiler.perfmap", timeout_ms, &attach);

	if (!code)
		code = jvm_attach__finish(attach, err);
	jvm_attach__free(attach);
	return code;
}

#endif
