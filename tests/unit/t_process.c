// SPDX-License-Identifier: GPL-2.0-or-later
/* What the kernel half makes of forks and execs: who is sampled from then on, and with which
 * tables; a program that follows another may lie at the same addresses, so that no stack would
 * tell. */
#include "core/util.h"
#include "tests/tap.h"

#include "bpf/host/shim.h"

const volatile __u32 cfg_ring_wakeup_bytes = 1 << 20;
const volatile __u32 cfg_pidns_ino = 0;
__u32 last_code = 0;

/* Programs have the parameters that the kernel gives them. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "bpf/process.bpf.c"

#define PARENT 100
#define CHILD  200
#define ROOM   4

static struct rec_task told;
static int n_told;

static void keep_record(void *ctx, const void *data, size_t size)
{
	(void)ctx;
	if (size == sizeof(told))
		memcpy(&told, data, size);
	n_told++;
}

static uint64_t counted(enum counter counter)
{
	uint32_t key = counter;

	return *(uint64_t *)host_map__lookup(&counters, &key);
}

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
	struct task_struct to = { .pid = child + 1, .tgid = child };

	n_told = 0;
	on_fork(&from, &to);
	return host_map__lookup(&targets, &child);
}

static void test_fork(void)
{
	ok(!fork_of(PARENT, CHILD) && !n_told, "a child of nobody's");
	put(PARENT, 0);
	ok(!fork_of(PARENT, CHILD) && !n_told, "one of a target that is not followed");
	put(PARENT, PROC_FOLLOW);
	fork_of(PARENT, PARENT);
	ok(!n_told, "a new thread is none");
	ok(fork_of(PARENT, CHILD) && is_target(CHILD, 7, 3, PROC_FOLLOW),
	   "a child is a target with all that its parent has");
	ok(n_told == 1 && told.type == REC_FORK && told.tgid == CHILD && told.tid == CHILD &&
		   told.parent_tgid == PARENT,
	   "and is told");
	host.ring_full = true;
	fork_of(PARENT, CHILD);
	host.ring_full = false;
	is_int(counted(COUNT_EVENT_LOST), 1, "if there is room");
	for (uint32_t i = 1; i < ROOM; i++)
		fork_of(PARENT, CHILD + i);
	is_int(counted(COUNT_TARGETS_FULL), 1, "one that has no place is counted");
	ok(!n_told, "and not told");
}

static void exec_by(uint32_t tgid)
{
	struct task_struct task = { .pid = tgid, .tgid = tgid };

	n_told = 0;
	on_exec(&task, tgid, NULL);
}

static void test_exec(void)
{
	exec_by(CHILD + ROOM);
	ok(!n_told, "an exec of nobody's");
	put(CHILD, PROC_FOLLOW | PROC_STARTING);
	exec_by(CHILD);
	ok(is_target(CHILD, 0, 0, PROC_FOLLOW),
	   "a new program has no tables, no walkers, and begins");
	ok(n_told == 1 && told.type == REC_EXEC && told.tgid == CHILD && !told.parent_tgid,
	   "and is told");
}

static void exit_by(uint32_t tgid, int live)
{
	struct signal_struct signal = { .live.counter = live };
	struct task_struct task = { .pid = tgid + 1, .tgid = tgid, .signal = &signal };

	n_told = 0;
	on_end(&task);
}

static void test_exit(void)
{
	exit_by(CHILD + ROOM, 0);
	ok(!n_told, "an exit of nobody's");
	put(CHILD, PROC_FOLLOW);
	exit_by(CHILD, 1);
	ok(!n_told, "a thread's is not its process's");
	exit_by(CHILD, 0);
	ok(n_told == 1 && told.type == REC_EXIT && told.tgid == CHILD, "the last thread's is");
	ok(is_target(CHILD, 7, 3, PROC_FOLLOW), "what it still does is sampled");
	ok(!fork_of(CHILD + ROOM, CHILD), "its PID, used again by a stranger, is nobody's");
}

int main(void)
{
	HOST_ARRAY(counters, COUNTERS_N);
	HOST_HASH(targets, ROOM);
	host.on_record = keep_record;
	test_fork();
	test_exec();
	test_exit();
	host__done();
	return tap__done();
}
