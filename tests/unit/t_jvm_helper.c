// SPDX-License-Identifier: GPL-2.0-or-later
/* The helper process that sends requests to a JVM. It has the JVM's user and none of its caller's
 * resources. It exits without a trace when it is stopped or when its caller is killed. */
#include "tests/unit/jvm_fake.h"

/* Returns the process ID of a child of @pid other than @but; 0: no such child. */
static int child_of(int pid, int but)
{
	char path[64];
	int child = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	file = fopen(path, "re");
	while (file && fscanf(file, "%d", &child) == 1 && child == but)
		child = 0;
	if (file)
		fclose(file);
	return child == but ? 0 : child;
}

/* Starts a request that is never answered. Returns the process ID of its helper after the helper
 * sent the request. */
static int start_unanswered(int fake, struct jvm_attach **ret)
{
	const char *path = fake__path(".attach_pid", fake);
	int helper = 0;

	if (jvm_attach__start(fake, "Compiler.perfmap", LONG_MS, ret))
		return 0;
	helper = child_of(getpid(), fake);
	while (!play->quits || access(path, F_OK))
		poll(NULL, 0, 1);
	return helper;
}

/* Java 8 accepts a request only from its own user and group. */
static void test_user(void)
{
	struct err err = {};
	int pid;

	if (geteuid() != 0) {
		tap__skip("not root", "another user's JVM");
		return;
	}
	*play = (struct play) { .catches = true,
				.dispatches = true,
				.starts = true,
				.opens = true,
				.reply = "0\n",
				.uid = 4711,
				.gid = 4712 };
	pid = fake__start(false);
	is_int(fake__ask(pid, LONG_MS, &err), 0, "another user's JVM: %s", err.text);
	is_int(play->peer.uid, play->uid, "another user's JVM: is asked as that user");
	is_int(play->peer.gid, play->gid, "another user's JVM: and group");
	ok(play->had_trigger, "another user's JVM: there was a file");
	ok(access(fake__path(".attach_pid", pid), F_OK), "another user's JVM: no file is left");
	fake__end(pid);
}

static void test_called_off(void)
{
	struct jvm_attach *attach;
	int pid, helper;

	*play = (struct play) { .catches = true, .dispatches = true, .starts = true };
	pid = fake__start(false);
	helper = start_unanswered(pid, &attach);
	if (!ok(helper > 0, "called off: there is a helper"))
		return;
	ok(!jvm_attach__is_over(attach), "called off: it is not over");
	kill(helper, SIGINT);
	kill(helper, SIGTERM);
	kill(helper, SIGHUP);
	ok(!jvm_attach__is_over(attach), "called off: signals of a terminal do nothing");
	jvm_attach__free(attach);
	ok(access(fake__path(".attach_pid", pid), F_OK), "called off: no file is left");
	is_int(kill(helper, 0), -1, "called off: nor a process");
	fake__end(pid);
}

/* The helper is stopped, as by the user that it switched to. */
static void test_helper_stopped(void)
{
	struct jvm_attach *attach;
	struct err err = {};
	int pid, helper;

	*play = (struct play) { .reply = "", .keeps_open = true };
	pid = fake__start(true);
	if (jvm_attach__start(pid, "Compiler.perfmap", SHORT_MS, &attach))
		exit(1);
	helper = child_of(getpid(), pid);
	kill(helper, SIGSTOP);
	is_int(jvm_attach__finish(attach, &err), -ETIMEDOUT,
	       "helper stopped: it ends nevertheless");
	is_int(jvm_attach__finish(attach, &err), -ETIMEDOUT, "helper stopped: the same again");
	ok(strstr(err.text, "hangs"), "helper stopped: says %s", err.text);
	ok(jvm_attach__is_over(attach), "helper stopped: it is over");
	is_int(kill(helper, 0), -1, "helper stopped: it is gone");
	jvm_attach__free(attach);
	fake__end(pid);
}

/* The helper has none of the caller's files; otherwise the other end of a pipe would wait for it.
 */
static void test_files_closed(void)
{
	struct jvm_attach *attach;
	int pid, helper, fds[2], high;
	struct pollfd polled;

	*play = (struct play) { .catches = true, .dispatches = true, .starts = true };
	pid = fake__start(false);
	if (pipe(fds) || (high = fcntl(fds[1], F_DUPFD, 500)) < 0)
		exit(1);
	helper = start_unanswered(pid, &attach);
	ok(helper > 0, "files: there is a helper");
	close(fds[1]);
	close(high);
	polled = (struct pollfd) { .fd = fds[0], .events = POLLIN };
	is_int(poll(&polled, 1, 0), 1, "files: the helper does not hold the caller's");
	close(fds[0]);
	jvm_attach__free(attach);
	fake__end(pid);
}

static void test_caller_killed(void)
{
	struct jvm_attach *attach;
	int pid, caller, helper, status = -1;

	*play = (struct play) { .catches = true, .dispatches = true, .starts = true };
	pid = fake__start(false);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	caller = fork();
	if (!caller) {
		start_unanswered(pid, &attach);
		pause();
	}
	while (!play->quits || access(fake__path(".attach_pid", pid), F_OK))
		poll(NULL, 0, 1);
	helper = child_of(caller, 0);
	ok(helper > 0, "caller killed: there is a helper");
	kill(caller, SIGKILL);
	waitpid(caller, NULL, 0);
	is_int(waitpid(helper, &status, 0), helper, "caller killed: the helper ends");
	is_int(status, 0, "caller killed: by itself");
	ok(access(fake__path(".attach_pid", pid), F_OK), "caller killed: no file is left");
	fake__end(pid);
}

int main(void)
{
	fake__init();
	test_user();
	if (!child_of(getppid(), 0)) {
		tap__skip("this kernel does not list children", "what is left of helpers");
	} else {
		test_called_off();
		test_helper_stopped();
		test_files_closed();
		test_caller_killed();
	}
	is_int(waitpid(-1, NULL, WNOHANG), -1, "no process is left");
	return tap__done();
}
