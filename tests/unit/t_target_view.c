// SPDX-License-Identifier: GPL-2.0-or-later
/* A process and its core file: both views give the same data. */
#include "core/target/target_view.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "core/base/util.h"
#include "core/target/core_file.h"
#include "core/target/process_words.h"
#include "core/target/threads.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

#define ID 0x6272616964ULL

static uint64_t word = 1; /* in memory that the core file itself contains */

static void *wait_there(void *ignored)
{
	while (true)
		pause();
	return ignored;
}

/* Starts a process with three threads, which waits. */
static pid_t start(void)
{
	int ready[2];
	pthread_t thread;
	char byte = 0;
	pid_t pid;

	if (pipe(ready))
		exit(1);
	pid = fork();
	if (!pid) {
		word = ID;
		for (int i = 0; i < 2; i++)
			if (pthread_create(&thread, NULL, wait_there, NULL))
				_exit(1);
		if (write(ready[1], &byte, 1) != 1)
			_exit(1);
		wait_there(NULL);
	}
	if (read(ready[0], &byte, 1) != 1)
		exit(1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

struct answers {
	struct procfs_info info;
	struct procfs_mappings mappings;
	uint32_t *tids;
	size_t n_tids;
	uint64_t word;
	uint64_t inode; /* inode of the program below the process's root */
	bool has_argument;
};

static void ask(uint32_t pid, struct answers *ret)
{
	struct target_file file;
	int root = procfs__open_root(pid);

	*ret = (struct answers) {};
	ok(!procfs__info(pid, &ret->info, NULL), "its status");
	ok(!procfs__mappings(pid, &ret->mappings), "its mappings");
	ok(!threads__list(pid, &ret->tids, &ret->n_tids), "its threads");
	ok(procfs__read_memory(pid, (uintptr_t)&word, &ret->word, sizeof(ret->word)), "its memory");
	ret->has_argument = process_words__have(pid, "NONE=", "t_target_view");
	if (ok(root >= 0 && ret->mappings.n &&
		       !target_file__find(root, ret->mappings.list[0].path, true, &file),
	       "a file below its root")) {
		ret->inode = file.ino;
		target_file__done(&file);
	}
	close_fd(&root);
}

static void done(struct answers *answers)
{
	procfs_mappings__done(&answers->mappings);
	free(answers->tids);
}

/* Compares the mappings. A core file has no device and inode, and no permissions of mappings that
 * it leaves out. gcore treats the headers of such files as code. So each live mapping is looked up
 * by its address. */
static void compare_mappings(const struct procfs_mappings *live, const struct procfs_mappings *core)
{
	size_t n = 0;

	for (size_t i = 0; i < live->n; i++) {
		const struct procfs_mapping *a = &live->list[i];

		for (size_t k = 0; k < core->n; k++) {
			const struct procfs_mapping *b = &core->list[k];

			n += a->start == b->start && a->end == b->end && a->offset == b->offset &&
			     a->anonymous == b->anonymous && !strcmp(a->path, b->path);
		}
	}
	is_int(n, live->n, "each mapping of code is in the core file");
	for (size_t i = 1; i < core->n; i++)
		if (core->list[i].start < core->list[i - 1].end)
			ok(false, "mapping %zu overlaps the one below", i);
}

static void compare(const struct answers *live, const struct answers *core)
{
	is_int(core->info.pid, live->info.pid, "PID");
	is_int(core->info.parent_pid, live->info.parent_pid, "parent");
	is_int(core->info.uid, live->info.uid, "user");
	is_int(core->info.kernel_thread, live->info.kernel_thread, "no thread of the kernel");
	is_str(core->info.name, live->info.name, "name");
	is_str(core->info.command, live->info.command, "command");
	ok(live->has_argument && core->has_argument, "an argument");
	compare_mappings(&live->mappings, &core->mappings);
	is_int(live->n_tids, 3, "three threads");
	ok(core->n_tids == live->n_tids &&
		   !memcmp(core->tids, live->tids, live->n_tids * sizeof(*live->tids)),
	   "the same threads");
	is_int(live->word, ID, "a word of memory");
	is_int(core->word, live->word, "the same word");
	is_int(core->inode, live->inode, "the same file");
}

/* A core file has no data on other processes, whether or not a process has the ID. */
static void test_others(uint32_t pid, const struct answers *core)
{
	struct procfs_mappings mappings;
	struct procfs_info info;
	uint32_t *tids;
	size_t n;

	is_int(procfs__info(getpid(), &info, NULL), -ESRCH, "this process is not in the core file");
	is_int(procfs__mappings(getpid(), &mappings), -ESRCH, "nor its mappings");
	is_int(threads__list(getpid(), &tids, &n), -ESRCH, "nor its threads");
	ok(!procfs__read_memory(getpid(), (uintptr_t)&word, &n, sizeof(n)), "nor its memory");
	is_int(procfs__open(pid, "maps", O_RDONLY), -ENOTDIR, "there is no text of mappings");
	ok(!procfs__info(core->tids[2], &info, NULL) && info.pid == pid,
	   "a thread's id is as good as its process's");
}

int main(void)
{
	struct answers live, from_core;
	struct core_file *core;
	struct err err = {};
	char path[128];
	int n_files;
	pid_t pid;

	workdir__make();
	pid = start();
	ask(pid, &live);
	if (!ok(workdir__try("gcore -o core %d >log 2>&1", pid), "gcore makes a core file"))
		return tap__done();
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	snprintf(path, sizeof(path), "%s/core.%d", workdir, pid);
	n_files = workdir__count();
	setenv("TMPDIR", workdir, 1);
	if (ok(!core_file__open(path, "/", &core, &err), "it can be read: %s", err.text)) {
		is_int(workdir__count(), n_files, "no file is written for it");
		ask(pid, &from_core);
		compare(&live, &from_core);
		test_others(pid, &from_core);
		core_file__close(core);
		done(&from_core);
	}
	is_int(procfs__info(pid, &live.info, NULL), -ESRCH, "then the live system is read again");
	done(&live);
	return tap__done();
}
