// SPDX-License-Identifier: GPL-2.0-or-later
/* Files that a target can put where braid reads: links out of its root, pipes, devices, files of
 * the kernel, and a file system that does not answer. */
#include "core/files/target_file.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/base/util.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

static int root;

/* Returns 0 and the beginning of the file, or the error. */
static int read_below(int below, const char *path, bool follow, char *ret, size_t size)
{
	struct target_file file;
	int code = target_file__find(below, path, follow, &file), fd;
	ssize_t n;

	if (code)
		return code;
	fd = target_file__open(&file);
	n = fd < 0 ? 0 : pread(fd, ret, size - 1, 0);
	ret[max_of(n, 0)] = '\0';
	code = min_of(fd, 0);
	close_fd(&fd);
	target_file__done(&file);
	return code;
}

static void check(const char *path, const char *want, const char *what)
{
	char text[64] = "";

	is_int(read_below(root, path, true, text, sizeof(text)), 0, "%s: found", what);
	is_str(text, want, "%s: its bytes", what);
}

static void refuse(const char *path, bool follow, int want, const char *what)
{
	char text[64];

	is_int(read_below(root, path, follow, text, sizeof(text)), want, "%s", what);
}

static void test_below(void)
{
	workdir__run("mkdir -p root/etc root/dir && echo inner >root/etc/passwd && "
		     "echo outer >secret && ln -s /etc/passwd root/absolute && "
		     "ln -s ../../../../../../../../secret root/up && "
		     "ln -s \"$PWD/secret\" root/out && ln -s loop root/loop && "
		     "ln -s /proc/self/root/etc/passwd root/magic");
	check("/etc/passwd", "inner\n", "a path");
	check("absolute", "inner\n", "an absolute link stays below the root");
	check("/../../etc/../etc/passwd", "inner\n", "so does ..");
	refuse("up", true, -ENOENT, "a link upwards");
	refuse("out", true, -ENOENT, "a link to a file outside");
	refuse("loop", true, -ELOOP, "a loop");
	refuse("absolute", false, -ELOOP, "a link where none is followed");
	refuse("nothing", true, -ENOENT, "nothing");
	refuse("", true, -ENOENT, "no path");
}

static void test_kinds(void)
{
	int host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char text[64], long_path[PATH_MAX + 10];

	workdir__run("mkfifo root/fifo && ln -s fifo root/to_fifo");
	refuse("dir", true, -EINVAL, "a directory");
	refuse("fifo", true, -EINVAL, "a pipe, which nobody else has open");
	refuse("to_fifo", true, -EINVAL, "a link to one");
	is_int(read_below(host, "/dev/null", true, text, sizeof(text)), -EINVAL, "a device");
	is_int(read_below(host, "/proc/version", true, text, sizeof(text)), -EINVAL,
	       "a regular file that the kernel makes up");
	is_int(read_below(host, "/sys/kernel/notes", true, text, sizeof(text)), -EINVAL, "another");
	is_int(read_below(host, "/proc/self/exe", true, text, sizeof(text)), -ELOOP,
	       "a link that only the kernel can follow");
	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	refuse(long_path, true, -ENAMETOOLONG, "a path too long");
	close(host);
}

static void test_facts(void)
{
	struct target_file file, again;
	struct stat st;
	int fd;

	workdir__write("root/facts", "0123456789");
	fstatat(root, "facts", &st, 0);
	is_int(target_file__find(root, "facts", true, &file), 0, "a file");
	ok(file.dev == st.st_dev && file.ino == st.st_ino && file.uid == st.st_uid, "which it is");
	ok(file.size == 10 && file.mtime_ns / (int64_t)NSEC_PER_SEC == st.st_mtime, "as it is");
	ok(!file.may_hang, "on a disk");
	workdir__run("rm root/facts");
	fd = target_file__open(&file);
	ok(fd >= 0 && !target_file__is_copy(fd), "deleted, it can be read");
	close_fd(&fd);
	target_file__done(&file);
	target_file__done(&file);
	workdir__write("root/facts", "0123456789");
	is_int(target_file__find(root, "facts", true, &again), 0, "another");
	fd = target_file__open(&again);
	ok(fd >= 0 && !fstat(fd, &st) && st.st_ino == again.ino, "what is opened was found");
	close_fd(&fd);
	target_file__done(&again);
}

/* --- the helper --- */

/* Returns the newest child of that name, as the previous one may not be reaped yet; 0: no child. */
static int helper_pid(void)
{
	char line[64] = "";
	FILE *pipe = workdir__pipe("pgrep -n -P %d -x braid-files || :", getpid());

	if (!fgets(line, sizeof(line), pipe))
		line[0] = '\0';
	pclose(pipe);
	return atoi(line);
}

/* Kills the helper after it received a request, while the caller waits for the answer. */
static void kill_during_request(int pid)
{
	char path[32], text[16] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/syscall", getppid());
	while (strncmp(text, "7 ", 2) != 0) { /* poll: arch/x86/entry/syscalls/syscall_64.tbl */
		file = fopen(path, "r");
		if (!file || !fgets(text, sizeof(text), file))
			text[0] = '\0';
		if (file)
			fclose(file);
	}
	kill(pid, SIGKILL);
	_exit(0);
}

static void test_killed_during_request(void)
{
	int pid = helper_pid();
	pid_t killer;

	kill(pid, SIGSTOP);
	killer = fork();
	if (!killer)
		kill_during_request(pid);
	refuse("more/nothing", true, -ENOENT, "killed with the question: another one answers");
	waitpid(killer, NULL, 0);
	ok(helper_pid() > 0 && helper_pid() != pid, "which is there now");
}

/* A helper that gets no CPU for two seconds, as on a loaded machine. */
static void test_stopped(void)
{
	int pid = helper_pid();
	pid_t waker;

	workdir__run("mkdir root/late && echo late >root/late/file && sync && "
		     "{ echo 2 >/proc/sys/vm/drop_caches; } 2>/dev/null || :");
	kill(pid, SIGSTOP);
	waker = fork();
	if (!waker) {
		sleep(2);
		kill(pid, SIGCONT);
		_exit(0);
	}
	refuse("late/none", true, -ENOENT, "stopped for 2 s: it answers then");
	waitpid(waker, NULL, 0);
	check("late/file", "late\n", "and nothing is held against the place");
	is_int(helper_pid(), pid, "and it is the same helper");
}

static void test_killed(void)
{
	int pid = helper_pid();

	ok(pid > 0, "a helper looks files up that the kernel does not remember");
	kill(pid, SIGKILL);
	workdir__run("mkdir root/more && echo more >root/more/file");
	refuse("more/none", true, -ENOENT, "it is killed: the next question is answered");
	check("more/file", "more\n", "and the next");
	ok(pid != helper_pid(), "by another");
}

/* --- a file system that does not answer --- */

struct server {
	FILE *to, *from;
	int pid;
};

static bool say(struct server *server, const char *word)
{
	char line[64] = "";

	if (word)
		fprintf(server->to, "%s\n", word);
	fflush(server->to);
	return fgets(line, sizeof(line), server->from) &&
	       !strncmp(line, word ? word : "ready", strlen(word ? word : "ready"));
}

static bool start(struct server *server)
{
	const char *output = getenv("OUTPUT");
	char program[PATH_MAX], directory[128], file[128];
	int to[2], from[2];

	snprintf(program, sizeof(program), "%s/tests/tools/deadfs", output ? output : "build");
	snprintf(directory, sizeof(directory), "%s/root/mount", workdir);
	snprintf(file, sizeof(file), "%s/served", workdir);
	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		return false;
	server->pid = fork();
	if (!server->pid) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		execl(program, program, directory, "file", file, NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	server->to = fdopen(to[1], "w");
	server->from = fdopen(from[0], "r");
	return say(server, NULL);
}

/* Sends SIGTERM, as to any program with a session: the signal is blocked, and read later. */
static void test_signal(struct server *server)
{
	struct signalfd_siginfo info;
	struct target_file file;
	sigset_t term, old;
	int fd;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, &old);
	ok(say(server, "hang"), "it answers nothing");
	raise(SIGTERM);
	is_int(target_file__find(root, "mount/other", true, &file), -EINTR, "a signal ends a wait");
	fd = signalfd(-1, &term, SFD_CLOEXEC | SFD_NONBLOCK);
	ok(read(fd, &info, sizeof(info)) == sizeof(info), "and is left to who waits for it");
	close(fd);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

static void test_hang(void)
{
	struct target_file file = TARGET_FILE_NONE;
	struct server server = {};
	char text[64] = "";
	struct stat st;
	int fd;

	workdir__run("mkdir root/mount && head -c 9000000 /dev/zero | tr '\\0' x >served && "
		     "chown 0:0 served");
	if (geteuid() || access("/dev/fuse", R_OK | W_OK)) {
		tap__skip("not root, or no /dev/fuse", "a file system that does not answer");
		return;
	}
	if (!ok(start(&server), "a file system"))
		return;
	is_int(target_file__find(root, "mount/file", true, &file), 0, "a file on it");
	ok(file.may_hang && file.size == 9000000, "may hang");
	fd = target_file__open(&file);
	ok(fd >= 0 && target_file__is_copy(fd) && !fstat(fd, &st) && st.st_size == 9000000 &&
		   st.st_mtime == file.mtime_ns / (int64_t)NSEC_PER_SEC,
	   "a copy of it");
	ok(fd >= 0 && pread(fd, text, 9, 8999990) == 9 && !strcmp(text, "xxxxxxxxx"), "whole");
	close_fd(&fd);
	test_signal(&server);
	is_int(target_file__find(root, "mount/other", true, &(struct target_file) {}), -ETIMEDOUT,
	       "no wait without an end");
	is_int(target_file__open(&file), -ETIMEDOUT, "nor to read");
	target_file__done(&file);
	check("etc/passwd", "inner\n", "others answer");
	fclose(server.to);
	fclose(server.from);
}

int main(void)
{
	workdir__make();
	workdir__run("mkdir root");
	root = openat(AT_FDCWD, workdir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	root = openat(root, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	test_below();
	test_kinds();
	test_facts();
	test_killed();
	test_killed_during_request();
	test_stopped();
	test_hang();
	close(root);
	return tap__done();
}
