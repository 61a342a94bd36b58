// SPDX-License-Identifier: GPL-2.0-or-later
/* A file that moves to its place when it is complete. Its writer is killed by the kernel at each
 * step, at a chosen system call (seccomp). */
#include "core/base/file_beside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"
#include "tests/unit/workdir.h"

#define NOBODY	65534
#define NOWHERE 0xffff /* not a system call */

static void clean(void)
{
	workdir__run("rm -rf ./* ./.braid*");
}

static void has(const char *want, const char *what)
{
	size_t len;
	char *text = (char *)workdir__read("file", &len);

	text[len] = '\0';
	is_str(text, want, "%s", what);
	free(text);
}

static void put(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		abort();
	close(fd);
}

/* Kills the process at system call @number. If @nameless is false, no file system supports files
 * without a name. */
static void end_at(uint32_t number, bool nameless)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
		BPF_STMT(BPF_RET | BPF_K,
			 nameless ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | EOPNOTSUPP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int write_whole(const char *text)
{
	struct file_beside file;
	int ret = file_beside__create("file", &file);

	if (!ret && write(file.fd, text, strlen(text)) < 0)
		ret = -errno;
	if (!ret)
		ret = file_beside__replace(&file, "file");
	file_beside__done(&file);
	return ret;
}

/* Writes in a child. Returns the child's status, as the shell has it. */
static int write_in_child(const char *text, uint32_t number, bool nameless)
{
	pid_t child = fork();
	int status = 0;

	if (!child) {
		end_at(number, nameless);
		_exit(write_whole(text) ? 1 : 0);
	}
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static const struct step {
	const char *name;
	uint32_t number;
} steps[] = { { "write", SYS_write }, { "link", SYS_linkat }, { "rename", SYS_rename } };

static void test_nothing_there(void)
{
	for (size_t i = 0; i < 2; i++) {
		is_int(write_in_child("new", steps[i].number, true), 128 + SIGSYS,
		       "nothing there: ended at %s", steps[i].name);
		is_int(workdir__count(), 0, "nothing there: nothing is left");
	}
	is_int(write_in_child("new", SYS_rename, true), 0, "nothing there: needs no other name");
	has("new", "nothing there: is there");
	is_int(workdir__count(), 1, "nothing there: and nothing else");
	clean();
}

static void test_replaced(void)
{
	put("file", "old");
	for (size_t i = 0; i < 3; i++) {
		is_int(write_in_child("first", steps[i].number, true), 128 + SIGSYS,
		       "replaced: ended at %s", steps[i].name);
		has("old", "replaced: the old one is there");
		is_int(workdir__count(), i == 2 ? 2 : 1, "replaced: what is left");
	}
	is_int(write_in_child("second", SYS_rename, true), 128 + SIGSYS, "replaced: ended again");
	is_int(workdir__count(), 2, "replaced: no more of them");
	is_int(write_whole("third"), 0, "replaced: then not ended");
	has("third", "replaced: the new one is there");
	is_int(workdir__count(), 1, "replaced: and nothing else");
	clean();
}

/* The name belongs to a file that braid must not change. */
static void test_not_ours(void)
{
	char name[64] = "";
	struct dirent *entry;
	struct stat before = {}, after = {};
	DIR *dir;

	put("file", "old");
	write_in_child("first", SYS_rename, true);
	dir = opendir(".");
	while ((entry = readdir(dir)))
		if (!strncmp(entry->d_name, ".braid-", 7))
			snprintf(name, sizeof(name), "%.60s", entry->d_name);
	closedir(dir);
	ok(name[0], "not ours: the name that it uses");
	if (geteuid()) {
		unlink(name);
		ok(!symlink("file", name), "not ours: a link");
	} else {
		ok(!chown(name, NOBODY, NOBODY), "not ours: another user's file");
	}
	lstat(name, &before);
	is_int(write_whole("second"), 0, "not ours: written all the same");
	has("second", "not ours: it is there");
	lstat(name, &after);
	ok(before.st_ino == after.st_ino, "not ours: and so is the other");
	is_int(workdir__count(), 2, "not ours: nothing else");
	clean();
}

static void test_only_if_free(void)
{
	struct file_beside file;

	is_int(file_beside__create("file", &file), 0, "if free: created");
	is_int(workdir__count(), 0, "if free: has no name");
	put("file", "old");
	is_int(file_beside__place(&file, "file"), -EEXIST, "if free: it is not");
	file_beside__done(&file);
	has("old", "if free: nothing has changed");
	is_int(workdir__count(), 1, "if free: nothing is left");
	clean();
	is_int(file_beside__create("none/file", &file), -ENOENT, "no directory");
	file_beside__done(&file);
}

/* The file system does not support files without a name. */
static void test_named(void)
{
	is_int(write_in_child("new", NOWHERE, false), 0, "named: written");
	has("new", "named: is there");
	is_int(write_in_child("newer", SYS_linkat, false), 0, "named: replaced");
	has("newer", "named: is there, too");
	is_int(workdir__count(), 1, "named: and nothing else");
	is_int(write_in_child("no", SYS_rename, false), 128 + SIGSYS, "named: ended at rename");
	has("newer", "named: the old one is there");
	clean();
}

int main(void)
{
	workdir__make();
	if (chdir(workdir))
		return 1;
	test_nothing_there();
	test_replaced();
	test_not_ours();
	test_only_if_free();
	test_named();
	return tap__done();
}
