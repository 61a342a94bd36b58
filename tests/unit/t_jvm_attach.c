// SPDX-License-Identifier: GPL-2.0-or-later
/* The attach protocol with processes that play the JVM: the request, the result of all kinds of
 * answers, and the process that gets the signal. */
#include <sys/stat.h>

#include "tests/unit/jvm_fake.h"

#define REQUEST_LEN 26

static void test_answers(void)
{
	static const struct {
		struct play play;
		int code;
		const char *says;
	} cases[] = {
		{ { .reply = "0\n" }, 0, "" },
		{ { .reply = "0\nCommand executed successfully\n" }, 0, "" },
		{ { .reply = "-1\njava.lang.Oops: no \x1b[31m\n\tat x\n" }, -EIO, "no ?[31m" },
		{ { .reply = "0\njava.lang.Oops: later\n" }, -EIO, "later" },
		{ { .reply = "0\nWarning: Failed to create\n" }, -EIO, "Failed" },
		{ { .reply = "101\n" }, -EIO, "gives no reason" },
		{ { .reply = "" }, -EIO, "without an answer" },
		{ { .reply = "hello\x07\n" }, -EIO, "not the answer of a JVM: \"hello?\"" },
		{ { .reply = "0" }, -EIO, "not the answer of a JVM" },
		{ { .reply = "\n" }, -EIO, "not the answer of a JVM" },
		{ { .reply = "0\n", .endless = true }, -EIO, "too long" },
		{ { .reply = "0\n", .keeps_open = true }, -ETIMEDOUT, "does not respond" },
		{ { .reply = "", .keeps_open = true }, -ETIMEDOUT, "does not respond" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = {};
		int pid;

		*play = cases[i].play;
		pid = fake__start(true);
		is_int(fake__ask(pid, play->keeps_open ? SHORT_MS : LONG_MS, &err), cases[i].code,
		       "answer %zu: result", i);
		ok(strstr(err.text, cases[i].says), "answer %zu: says %s", i, err.text);
		ok(play->request_len == REQUEST_LEN &&
			   !memcmp(play->request, "1\0jcmd\0Compiler.perfmap\0\0\0", REQUEST_LEN),
		   "answer %zu: the request is version 1's", i);
		ok(fake__is_alive(pid), "answer %zu: who gave it lives", i);
		fake__end(pid);
	}
}

/* Tests files that another user can put in place of the socket. */
static void test_places(void)
{
	static const char *const says[] = { "not the JVM's socket", "not the JVM's socket",
					    "served by another process" };
	struct err err;

	for (size_t i = 0; i < ARRAY_SIZE(says); i++) {
		const char *place, *other;
		int pid, listener = -1, fd;

		*play = (struct play) { .reply = "0\n" };
		pid = fake__start(true);
		place = fake__path(".java_pid", pid);
		if (i == 0) {
			other = fake__path("braid-test-socket-", pid);
			rename(place, other);
			ok(!symlink(other, place), "place: a symbolic link to the real one");
		} else if (i == 1) {
			unlink(place);
			fd = open(place, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
			ok(fd >= 0, "place: a file");
			close_fd(&fd);
		} else {
			listener = fake__listen(pid);
			ok(listener >= 0, "place: the test's own socket");
		}
		err.text[0] = '\0';
		is_int(fake__ask(pid, LONG_MS, &err), -EIO, "place %zu: refused", i);
		ok(strstr(err.text, says[i]), "place %zu: says %s", i, err.text);
		is_int(play->request_len, 0, "place %zu: nothing was asked", i);
		fake__end(pid);
		if (i == 0)
			unlink(other);
		close_fd(&listener);
	}
}

static void test_signals(void)
{
	static const struct {
		const char *name;
		struct play play;
		int code, quits;
		const char *says;
	} cases[] = {
		{ "does not catch SIGQUIT", { .dispatches = true }, -EAGAIN, 0, "is starting" },
		{ "nor will", { .dispatches = true, .starts = true }, -ENOTSUP, 0, "-Xrs" },
		{ "is no HotSpot", { .catches = true }, -EAGAIN, 0, "is starting" },
		{ "is not far enough",
		  { .catches = true, .dispatches = true },
		  -EAGAIN,
		  0,
		  "is starting" },
		{ "leaves it to the program",
		  { .catches = true, .starts = true },
		  -ENOTSUP,
		  0,
		  "-Xrs" },
		{ "ignores it",
		  { .catches = true, .dispatches = true, .starts = true },
		  -ENOTSUP,
		  1,
		  "DisableAttachMechanism" },
		{ "is as it should be",
		  { .catches = true,
		    .dispatches = true,
		    .starts = true,
		    .opens = true,
		    .reply = "0\n" },
		  0,
		  1,
		  "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *name = cases[i].name;
		struct err err = {};
		int pid;

		*play = cases[i].play;
		pid = fake__start(false);
		is_int(fake__ask(pid, cases[i].code ? SHORT_MS : LONG_MS, &err), cases[i].code,
		       "%s: result", name);
		ok(strstr(err.text, cases[i].says), "%s: says %s", name, err.text);
		is_int(play->quits, cases[i].quits, "%s: SIGQUITs", name);
		is_int(play->had_trigger, cases[i].quits, "%s: with a file", name);
		ok(access(fake__path(".attach_pid", pid), F_OK), "%s: no file is left", name);
		ok(fake__is_alive(pid), "%s: lives", name);
		fake__end(pid);
	}
}

/* A socket of an earlier process with the same PID is ignored. */
static void test_stale_socket(void)
{
	struct err err = {};
	int pid, fd;

	*play = (struct play) {
		.catches = true, .dispatches = true, .starts = true, .opens = true, .reply = "0\n"
	};
	pid = fake__start(false);
	fd = fake__listen(pid);
	close_fd(&fd);
	is_int(fake__ask(pid, LONG_MS, &err), 0, "a stale socket: %s", err.text);
	is_int(play->quits, 1, "a stale socket: SIGQUITs");
	fake__end(pid);
}

static void test_trigger_in_the_way(void)
{
	struct err err = {};
	const char *path;
	int pid;

	*play = (struct play) { .catches = true, .dispatches = true, .starts = true };
	pid = fake__start(false);
	path = fake__path(".attach_pid", pid);
	ok(!symlink("/tmp/braid-test-nowhere", path), "a link where the file should be");
	is_int(fake__ask(pid, LONG_MS, &err), -EIO, "is refused");
	ok(strstr(err.text, "Remove it"), "it says %s", err.text);
	is_int(play->quits, 0, "no SIGQUIT then");
	ok(access("/tmp/braid-test-nowhere", F_OK), "nothing is made where it points");
	ok(!unlink(path), "and it is left alone");
	fake__end(pid);
}

static void test_no_target(void)
{
	char command[2048];
	struct jvm_attach *attach;
	struct err err = {};

	is_int(fake__ask(INT32_MAX, LONG_MS, &err), -ESRCH, "no process");
	ok(strstr(err.text, "2147483647"), "it is named: %s", err.text);
	memset(command, 'x', sizeof(command));
	command[sizeof(command) - 1] = '\0';
	if (jvm_attach__start(getpid(), command, LONG_MS, &attach))
		exit(1);
	is_int(jvm_attach__finish(attach, &err), -EINVAL, "a command that is too long");
	jvm_attach__free(attach);
	jvm_attach__free(NULL);
}

int main(void)
{
	fake__init();
	test_answers();
	test_places();
	test_signals();
	test_stale_socket();
	test_trigger_in_the_way();
	test_no_target();
	is_int(waitpid(-1, NULL, WNOHANG), -1, "no process is left");
	return tap__done();
}
