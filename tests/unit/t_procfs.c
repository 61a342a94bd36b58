// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/procfs.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "core/base/living_task.h"
#include "core/base/memory.h"
#include "core/base/quota.h"
#include "core/base/stop.h"
#include "core/base/util.h"
#include "core/target/process.h"
#include "tests/tap.h"

static int parse(const char *text, struct procfs_mappings *ret)
{
	FILE *maps = fmemopen((void *)text, strlen(text), "r");
	int code = procfs__parse_mappings(maps, ret);

	fclose(maps);
	return code;
}

static void test_maps(void)
{
	static const char text[] =
		"00400000-00401000 r--p 00000000 fe:00 1 /bin/a b\n"
		"00401000-00402000 r-xp 00001000 fe:00 1 /bin/a b\n"
		"7f0000000000-7f0000001000 r-xp 00002000 fe:00 2 /tmp/gone.so (deleted)\n"
		"7f0000002000-7f0000003000 rwxp 00000000 00:00 0 \n"
		"7fff00000000-7fff00001000 r-xp 00000000 00:00 0 [vdso]\n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";
	struct procfs_mappings maps = {};

	is_int(parse(text, &maps), 0, "a maps file is parsed");
	if (!is_int(maps.n, 4, "executable mappings only, without [vsyscall]"))
		return;
	is_str(maps.list[0].path, "/bin/a b", "a path with a blank");
	is_int(maps.list[0].offset, 0x1000, "the offset");
	is_str(maps.list[1].path, "/tmp/gone.so", "(deleted) is taken off");
	ok(!maps.list[1].anonymous, "and it still is a file");
	ok(maps.list[2].anonymous && !maps.list[2].path[0], "anonymous memory has no path");
	ok(maps.list[3].vdso && maps.list[3].anonymous, "the vDSO");
	procfs_mappings__done(&maps);
	procfs_mappings__done(&maps);
	ok(!maps.list, "done twice");
}

static void test_hostile_maps(void)
{
	static const char text[] = "nonsense\n"
				   "2000-1000 r-xp 0 0:0 0 /reversed\n"
				   "1000-2000 r-xp 0 0:0 0 /first\n"
				   "1800-2800 r-xp 0 0:0 0 /overlaps\n"
				   "zz-yy r-xp 0 0:0 0 /letters\n"
				   "3000-4000 r\n"
				   "3000-4000 r-xp 0 0:0 0 /last, no newline";
	struct procfs_mappings maps = {};

	is_int(parse(text, &maps), 0, "nonsense is left out");
	is_int(maps.n, 2, "two lines make sense");
	is_str(maps.n == 2 ? maps.list[1].path : "", "/last, no newline", "the last one, too");
	procfs_mappings__done(&maps);
}

/* Memory that a compiler writes code to is not executable through this mapping. Other memory is not
 * shared code. */
static void test_shared(void)
{
	static const char text[] = "10000-20000 rw-s 00000000 00:01 9 /dev/zero (deleted)\n"
				   "20000-30000 r-xs 00010000 00:01 9 /dev/zero (deleted)\n"
				   "30000-40000 rw-s 00000000 00:01 8 /dev/shm/x\n"
				   "40000-50000 rw-p 00000000 00:01 7 /dev/zero\n";
	struct procfs_mappings maps = {};

	is_int(parse(text, &maps), 0, "a maps file with shared memory");
	is_int(maps.n, 2, "that without a name may have code");
	ok(maps.n == 2 && maps.list[0].start == 0x10000 && maps.list[1].start == 0x20000,
	   "whether it is executable or not");
	procfs_mappings__done(&maps);
}

static const char *neighbour(const struct procfs_mappings *maps, uint32_t number)
{
	return number && number <= maps->n_files ? maps->files[number - 1].path : "";
}

/* The files on both sides of a piece of code. They are its own file if the code was moved. */
static void test_neighbours(void)
{
	static const char text[] = "08000-09000 rw-p 00000000 00:00 0 [heap]\n"
				   "09000-0a000 r-xp 00000000 00:00 0 \n"
				   "10000-11000 r--p 00000000 fe:00 1 /bin/a (deleted)\n"
				   "11000-12000 r-xp 00000000 00:00 0 \n"
				   "12000-13000 r-xp 00000000 00:01 7 /memfd:text (deleted)\n"
				   "13000-14000 rw-p 00004000 fe:00 1 /bin/a (deleted)\n"
				   "20000-21000 r-xp 00000000 fe:00 2 /lib/b\n"
				   "30000-31000 r-xp 00000000 00:00 0 \n";
	static const struct {
		const char *below, *above;
		uint64_t adjoining;
	} want[] = { { "", "/bin/a", 0x8000 },
		     { "/bin/a", "/bin/a", 0x10000 },
		     { "/bin/a", "/bin/a", 0x11000 },
		     { "/bin/a", "", 0 },
		     { "/lib/b", "", 0 } };
	struct procfs_mappings maps = {};

	is_int(parse(text, &maps), 0, "a maps file with neighbours");
	is_int(maps.n, ARRAY_SIZE(want), "neighbours: code");
	for (size_t i = 0; i < maps.n && i < ARRAY_SIZE(want); i++) {
		is_str(neighbour(&maps, maps.list[i].below), want[i].below, "%zu: below", i);
		is_str(neighbour(&maps, maps.list[i].above), want[i].above, "%zu: above", i);
		is_int(maps.list[i].adjoining, want[i].adjoining, "%zu: adjoining", i);
	}
	is_int(maps.n_files, 3, "each file that is a neighbour is there once");
	is_int(maps.n_files == 3 ? maps.files[1].offset : 0, 0x4000, "with its offset");
	procfs_mappings__done(&maps);
}

/* Memory that a compiler reserved for its code. */
static void test_reserved(void)
{
	static const char text[] = "10000-13000 rw-p 00000000 00:00 0 \n"
				   "13000-14000 rwxp 00000000 00:00 0 \n"
				   "14000-15000 ---p 00000000 00:00 0 \n"
				   "15000-16000 rw-p 00000000 00:00 0 \n"
				   "16000-17000 rwxp 00000000 00:00 0 \n"
				   "17000-20000 ---p 00000000 00:00 0 \n"
				   "20000-21000 ---p 00000000 fe:00 1 /lib/x\n"
				   "30000-31000 r-xp 00000000 fe:00 1 /lib/x\n"
				   "31000-32000 ---p 00000000 fe:00 1 /lib/x\n"
				   "32000-33000 ---p 00000000 00:00 0 \n"
				   "40000-41000 rwxp 00000000 00:00 0 \n"
				   "42000-43000 ---p 00000000 00:00 0 \n";
	static const uint64_t want[][2] = { { 0x13000, 0x15000 },
					    { 0x16000, 0x20000 },
					    { 0x30000, 0x31000 },
					    { 0x40000, 0x41000 } };
	struct procfs_mappings maps = {};

	is_int(parse(text, &maps), 0, "a maps file with reserved ranges");
	is_int(maps.n, ARRAY_SIZE(want), "code only");
	for (size_t i = 0; i < maps.n && i < ARRAY_SIZE(want); i++)
		ok(maps.list[i].start == want[i][0] && maps.list[i].end == want[i][1], "%lx to %lx",
		   (long)maps.list[i].start, (long)maps.list[i].end);
	procfs_mappings__done(&maps);
}

static void test_info(void)
{
	struct procfs_info info = {};
	struct err err = {};
	int pid;

	is_int(procfs__target(getpid(), &info, &err), 0, "this process can be profiled");
	is_int(info.pid, getpid(), "its PID");
	is_int(info.parent_pid, getppid(), "its parent");
	is_int(info.inner_pid, getpid(), "its PID where it is itself");
	is_int(info.uid, geteuid(), "its user");
	ok(strstr(info.command, "t_procfs"), "its command line");
	is_int(procfs__target(INT32_MAX, &info, &err), -ESRCH, "no such process");
	ok(strstr(err.text, "2147483647"), "the sentence names it: %s", err.text);
	pid = fork();
	if (!pid)
		_exit(0);
	waitid(P_PID, pid, NULL, WEXITED | WNOWAIT);
	is_int(procfs__target(pid, &info, &err), -EINVAL, "a zombie is refused");
	ok(strstr(err.text, "zombie"), "the sentence says so: %s", err.text);
	waitpid(pid, NULL, 0);
	if (procfs__info(2, &info, &err) || !info.kernel_thread) {
		tap__skip("PID 2 is no kernel thread here", "a kernel thread is refused");
	} else {
		is_int(procfs__target(2, &info, &err), -EINVAL, "a kernel thread is refused");
		ok(strstr(err.text, "kernel thread"), "the sentence says so: %s", err.text);
	}
}

static void *stay(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* Starts a process whose first thread has ended while another one runs. */
static int start_without_first(void)
{
	pthread_t thread;
	int pid = fork();

	if (pid)
		return pid;
	pthread_create(&thread, NULL, stay, NULL);
	pthread_exit(NULL);
}

static const char known[] = "what is in the memory of both";

static void test_first_ended(void)
{
	int pid = start_without_first(), fd;
	struct procfs_mappings maps = {};
	struct memory *memory = NULL;
	char text[sizeof(known)] = "";
	struct procfs_info info = {};
	struct err err = {};

	while (procfs__thread_state(pid) != 'Z' ||
	       procfs__thread_state(living_task__of(pid)) != 'S')
		usleep(1000);
	ok(living_task__of(pid) != (uint32_t)pid, "first ended: another thread stands for it");
	is_int(procfs__target(pid, &info, &err), 0, "first ended: it can be profiled");
	is_int(info.pid, pid, "first ended: its PID");
	is_int(info.state, 'S', "first ended: what the other does");
	ok(strstr(info.command, "t_procfs"), "first ended: its command line");
	is_int(procfs__mappings(pid, &maps), 0, "first ended: its mappings");
	ok(maps.n > 0, "first ended: there are some");
	procfs_mappings__done(&maps);
	fd = procfs__open_root(pid);
	ok(fd >= 0, "first ended: its root");
	close_fd(&fd);
	is_int(memory__of_process(pid, &memory), 0, "first ended: its memory");
	for (int i = 0; i < 2; i++)
		is_int(memory__read(memory, (uintptr_t)known, text, sizeof(text)), 0,
		       "first ended: ... can be read");
	is_str(text, known, "first ended: what is there");
	kill(pid, SIGKILL);
	waitid(P_PID, pid, NULL, WEXITED | WNOWAIT);
	is_int(living_task__of(pid), pid, "all ended: nothing stands for it");
	is_int(procfs__target(pid, &info, &err), -EINVAL, "all ended: a zombie");
	ok(memory__read(memory, (uintptr_t)known, text, sizeof(text)) != 0, "all ended: no memory");
	memory__free(memory);
	waitpid(pid, NULL, 0);
}

static void test_own_mappings(void)
{
	struct procfs_mappings maps = {};
	uint64_t here = (uintptr_t)test_own_mappings;
	size_t i;
	int fd = -1;

	is_int(procfs__mappings(getpid(), &maps), 0, "this process's mappings");
	for (i = 0; i < maps.n; i++)
		if (maps.list[i].start <= here && here < maps.list[i].end)
			break;
	if (ok(i < maps.n, "one holds this function"))
		fd = procfs__open_mapping(getpid(), &maps.list[i]);
	ok(fd >= 0, "and its file can be opened");
	close_fd(&fd);
	procfs_mappings__done(&maps);
	is_int(procfs__mappings(INT32_MAX, &maps), -ESRCH, "mappings of no process");
}

/* The maximum number of lines of a process, each with a path of the maximum length. */
static void test_long_maps(void)
{
	enum { LINES = 60000, PATH_BYTES = 4000 };
	struct procfs_mappings maps = {};
	FILE *file = tmpfile();
	char path[PATH_BYTES];
	size_t bytes = 0;

	memset(path, 'x', sizeof(path));
	for (uint64_t i = 1; file && i <= LINES; i++)
		fprintf(file, "%lx000-%lx000 r-xp 00000000 fe:00 2 /%.*s\n", (long)i, (long)i + 1,
			PATH_BYTES, path);
	if (!file)
		exit(1);
	rewind(file);
	is_int(procfs__parse_mappings(file, &maps), 0, "240 MB of lines");
	for (size_t i = 0; i < maps.n; i++)
		bytes += strlen(maps.list[i].path);
	ok(maps.n > 1000 && bytes < 10000000, "cost %zu bytes of paths", bytes);
	ok(maps.is_cut, "and are known to be cut");
	procfs_mappings__done(&maps);
	rewind(file);
	stop__request();
	is_int(procfs__parse_mappings(file, &maps), -EINTR, "a stop ends the reading");
	ok(!maps.list, "of which nothing is left");
	stop__clear();
	fclose(file);
}

/* A list in memory that leads back to itself. */
static void test_endless_list(void)
{
	uint64_t node = (uint64_t)(uintptr_t)&node;
	int n = 0;

	while (n < 1000 && procfs__read_memory(getpid(), node, &node, sizeof(node)))
		n++;
	is_int(n, 1000, "a list is read");
	stop__request();
	for (n = 0; n < 1000 && procfs__read_memory(getpid(), node, &node, sizeof(node));)
		n++;
	ok(n < 100, "a stop ends the reading of it after %d nodes", n);
	ok(!procfs__read_memory(getpid(), node, &node, sizeof(node)), "and nothing more is read");
	stop__clear();
	ok(procfs__read_memory(getpid(), node, &node, sizeof(node)), "until the stop is over");
}

/* The memory for a process's mappings is charged to its user. */
static void test_budget(void)
{
	static struct quota_limits limits;
	struct process one = { .pid = 1, .serial = 1, .info.uid = 4711 };
	struct process two = { .pid = 2, .serial = 2, .info.uid = 4711 };
	struct mapped *list;

	for (int i = 0; i < QUOTA_LEVELS; i++)
		for (int kind = 0; kind < QUOTA_KINDS; kind++)
			limits.limits[i][kind] = (struct quota_limit) { UINT64_MAX / 2, 0 };
	limits.limits[QUOTA_USER][QUOTA_RETAINED].burst = 150 * sizeof(*list);
	quota__set_limits(&limits);
	is_int(process__set_mapped(&one, calloc(100, sizeof(*list)), 100), 0, "a process");
	is_int(quota__retained(), 100 * sizeof(*list), "is charged for its mappings");
	is_int(process__set_mapped(&two, calloc(100, sizeof(*list)), 100), -EFBIG,
	       "another one of the user is over the budget");
	ok(!two.mapped && !two.n_mapped, "and has none");
	is_int(process__set_mapped(&one, calloc(50, sizeof(*list)), 50), 0,
	       "the first one shrinks");
	is_int(process__set_mapped(&two, calloc(100, sizeof(*list)), 100), 0, "then there is room");
	process__clear_mapped(&one);
	process__clear_mapped(&two);
	is_int(quota__retained(), 0, "all is given back");
	quota__close(one.account);
	quota__close(two.account);
	quota__set_limits(NULL);
}

static void test_inner_id(void)
{
	is_int(procfs__inner_id("NSpid:\t4711"), 4711, "one namespace");
	is_int(procfs__inner_id("NSpid:\t4711\t12\t1\nNSpgid:\t4\t5"), 1, "the innermost of three");
	is_int(procfs__inner_id("NSpid:\nNSpgid:\t4"), 0, "none, and another line behind");
	is_int(procfs__inner_id("NSpid:"), 0, "none");
}

int main(void)
{
	test_inner_id();
	test_maps();
	test_long_maps();
	test_endless_list();
	test_budget();
	test_hostile_maps();
	test_shared();
	test_neighbours();
	test_reserved();
	test_info();
	test_first_ended();
	test_own_mappings();
	return tap__done();
}
