// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel half's handling of forks and execs: the processes that are sampled from then on, and
 * their tables. Two programs in succession may use the same addresses, so that a stack does not
 * identify its program. */
#include "core/base/util.h"
#include "tests/tap.h"

#include "bpf/host/shim.h"

const volatile __u32 cfg_ring_wakeup_bytes = 1 << 20;
const volatile __u32 cfg_budget_permille = 0;
const volatile __u32 cfg_pidns_ino = 0;
__u32 last_code = 0;
__u32 last_program = 0;

/* Programs have the parameters that the kernel passes. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "bpf/process.bpf.c"

#define PARENT 100
#define CHILD  200
#define ROOM   4

static struct rec_task reported;
static struct rec_program reported_exec;
static int n_reported;

static void keep_record(void *ctx, const void *data, size_t size)
{
	(void)ctx;
	if (size == sizeof(reported))
		memcpy(&reported, data, size);
	else if (size == sizeof(reported_exec))
		memcpy(&reported_exec, data, size);
	n_reported++;
}

static uint64_t counted(enum counter counter)
{
	uint32_t key = counter;

	return *(uint64_t *)host_map__lookup(&counters, &key);
}

static struct mm_struct memory, child_memory;

static void put(uint32_t tgid, uint32_t flags)
{
	host_map__update(&targets, &tgid,
			 &(struct proc_rec) { .space = 7, .walkers = 3, .flags = flags });
}

static bool is_target(uint32_t tgid, uint32_t space, uint32_t bits, uint32_t flags)
{
	const struct proc_rec *rec = host_map__lookup(&targets, &tgid);

	return rec && rec->space == space && rec->walkers == bits && rec->flags == flags;
}

static bool fork_of(uint32_t parent, uint32_t child)
{
	struct task_struct from = { .pid = parent, .tgid = parent };
	struct task_struct to = {
		.pid = child + 1, .tgid = child, .mm = &child_memory, .start_boottime = 12345
	};

	n_reported = 0;
	on_fork(&from, &to);
	return host_map__lookup(&targets, &child);
}

static const struct proc_rec *target(uint32_t tgid)
{
	return host_map__lookup(&targets, &tgid);
}

static void test_fork(void)
{
	uint32_t before;

	ok(!fork_of(PARENT, CHILD) && !n_reported, "a child of nobody's");
	put(PARENT, 0);
	ok(!fork_of(PARENT, CHILD) && !n_reported, "one of a target that is not followed");
	put(PARENT, PROC_FOLLOW);
	fork_of(PARENT, PARENT);
	ok(!n_reported, "a new thread is none");
	before = last_program;
	ok(fork_of(PARENT, CHILD) && is_target(CHILD, 7, 3, PROC_FOLLOW),
	   "a child is a target with all that its parent has");
	ok(target(CHILD)->program > before && target(CHILD)->mm == (uintptr_t)&child_memory,
	   "but for its number and its memory");
	ok(n_reported == 1 && reported.type == REC_FORK && reported.tgid == CHILD &&
		   reported.tid == CHILD && reported.parent_tgid == PARENT &&
		   reported.start_ns == 12345 && reported.program == target(CHILD)->program,
	   "and is told");
	host.ring_full = true;
	fork_of(PARENT, CHILD);
	host.ring_full = false;
	is_int(counted(COUNT_EVENT_LOST), 1, "if there is room");
	for (uint32_t i = 1; i < ROOM; i++)
		fork_of(PARENT, CHILD + i);
	is_int(counted(COUNT_TARGETS_FULL), 1, "one that has no place is counted");
	ok(!n_reported, "and not told");
}

static const char *comm = "";

static void exec_by(uint32_t tgid)
{
	struct super_block device = { .s_dev = 0xfe00001 };
	struct inode inode = { .i_sb = &device,
			       .i_ino = 42,
			       .i_size = 4096,
			       .i_ctime_sec = 7,
			       .i_ctime_nsec = 5 | 1U << 31 };
	struct file file = { .f_inode = &inode };
	struct linux_binprm program = { .file = &file };
	struct cgroup root = { .kn = &(struct kernfs_node) { .id = 1 } };
	struct cgroup cgroup = { .kn = &(struct kernfs_node) { .id = 77 },
				 .level = 1,
				 .ancestors = { &root, &cgroup } };
	struct css_set cgroups = { .dfl_cgrp = &cgroup };
	struct cred cred = { .euid.val = 1000 };
	struct task_struct parent = { .pid = PARENT, .tgid = PARENT };
	struct task_struct task = { .pid = tgid,
				    .tgid = tgid,
				    .mm = &memory,
				    .start_boottime = 12345,
				    .group_leader = &task,
				    .real_parent = &parent,
				    .real_cred = &cred,
				    .cgroups = &cgroups };

	strcpy(task.comm, comm);
	n_reported = 0;
	on_exec(&task, tgid, &program);
}

static void test_exec(void)
{
	static const char command[] = "ls\0-l";
	static const struct image_key key = {
		.ino = 42, .size = 4096, .ctime_ns = 7000000005, .dev = 0xfe00001
	};
	uint32_t before;

	exec_by(CHILD + ROOM);
	ok(!n_reported, "an exec of nobody's");
	put(CHILD, PROC_FOLLOW | PROC_STARTING);
	comm = "ls";
	before = last_program;
	exec_by(CHILD);
	ok(is_target(CHILD, 0, 0, PROC_FOLLOW),
	   "a new program has no tables, no walkers, and begins");
	ok(target(CHILD)->program > before && target(CHILD)->mm == (uintptr_t)&memory,
	   "and another number, in other memory");
	ok(n_reported == 1 && reported_exec.type == REC_EXEC && reported_exec.tgid == CHILD &&
		   reported_exec.program == target(CHILD)->program && !reported_exec.image &&
		   !strcmp(reported_exec.comm, "ls"),
	   "and is told");
	ok(reported_exec.parent_tgid == PARENT && reported_exec.start_ns == 12345 &&
		   reported_exec.uid == 1000 && reported_exec.cgroup == 77 &&
		   !reported_exec.is_kernel,
	   "with where it belongs");
	is_int(reported_exec.command_len, 0, "arguments that cannot be read");
	memory.arg_start = 0x7000;
	memory.arg_end = 0x7000 + sizeof(command);
	host.ranges[0] = (struct host_range) { 0x7000, sizeof(command), command };
	host.n_ranges = 1;
	host_map__update(&image_files, &key, &(struct image_rec) { .number = 9 });
	exec_by(CHILD);
	ok(reported_exec.command_len == sizeof(command) &&
		   !memcmp(reported_exec.command, command, sizeof(command)),
	   "arguments that can");
	is_int(reported_exec.image, 9, "a file that is known");
	host.ring_full = true;
	exec_by(CHILD);
	host.ring_full = false;
	ok(counted(COUNT_EVENT_LOST) == 2 && is_target(CHILD, 0, 0, PROC_FOLLOW),
	   "if there is room");
}

static void exit_by(uint32_t tgid, int live)
{
	struct signal_struct signal = { .live.counter = live };
	struct task_struct task = { .pid = tgid + 1, .tgid = tgid, .signal = &signal };

	n_reported = 0;
	on_end(&task);
}

static void test_exit(void)
{
	exit_by(CHILD + ROOM, 0);
	ok(!n_reported, "an exit of nobody's");
	put(CHILD, PROC_FOLLOW);
	exit_by(CHILD, 1);
	ok(!n_reported, "a thread's is not its process's");
	exit_by(CHILD, 0);
	ok(n_reported == 1 && reported.type == REC_EXIT && reported.tgid == CHILD,
	   "the last thread's is");
	ok(is_target(CHILD, 7, 3, PROC_FOLLOW), "what it still does is sampled");
	ok(!fork_of(CHILD + ROOM, CHILD), "its PID, used again by a stranger, is nobody's");
}

static void rename_by(uint32_t tgid, uint32_t tid)
{
	struct task_struct task = { .pid = tid, .tgid = tgid };

	on_rename(&task);
}

/* The user specified a scope without a list of processes. */
static void test_scope(void)
{
	host__set(&cfg_scope, SCOPE_WIDE);
	put(CHILD, PROC_FOLLOW);
	exec_by(CHILD);
	ok(n_reported == 1 && is_target(CHILD, 0, 0, 0),
	   "what it executes has children of its own");
	host__set(&cfg_scope, SCOPE_WIDE | SCOPE_NAME);
	put(CHILD, 0);
	exec_by(CHILD);
	ok(n_reported == 1 && is_target(CHILD, 0, 0, PROC_UNDECIDED),
	   "another name: is it wanted?");
	exec_by(CHILD);
	ok(!n_reported && !target(CHILD), "nobody knows yet: it is met anew");
	put(CHILD, PROC_REFUSED);
	exec_by(CHILD);
	ok(!n_reported && !target(CHILD), "so is one that was not wanted");
	put(CHILD, PROC_REFUSED);
	rename_by(CHILD, CHILD + 1);
	ok(target(CHILD), "a thread's name is not its process's");
	rename_by(CHILD, CHILD);
	ok(!target(CHILD), "with another name it is met anew, too");
	put(CHILD, 0);
	rename_by(CHILD, CHILD);
	ok(target(CHILD), "what is wanted stays so");
	put(CHILD, PROC_REFUSED);
	exit_by(CHILD, 0);
	ok(!n_reported && !target(CHILD), "of one that was not wanted the end is not told");
	host__set(&cfg_scope, 0);
}

int main(void)
{
	HOST_ARRAY(counters, COUNTERS_N);
	HOST_HASH(targets, ROOM);
	HOST_HASH(image_files, 4);
	host.on_record = keep_record;
	test_fork();
	test_exec();
	test_exit();
	test_scope();
	host__done();
	return tap__done();
}
