// SPDX-License-Identifier: GPL-2.0-or-later
/* The CRuby walker's reports about the GVL in a made-up process: held, free, waited for (and its
 * owner), or unknown. The stack never depends on them. */
#include "tests/unit/ruby_synthetic.h"

#define RUNNER_TID   4711
#define GLIBC_TID    720
#define RACTOR_BYTES 1024
#define THREAD_BYTES 512

static struct pid numbers;	/* IDs of the sampled thread */
static uint64_t ractor, runner; /* object with the lock, and another thread's rb_thread_t */
static uint64_t cond;		/* condition variable on which the thread waits for its turn */

static bool is_lock(uint64_t address, enum lock_state lock, uint32_t peer)
{
	const struct rec_sample *head = &host.sample.head;

	futex = address;
	run();
	futex = 0;
	if (head->condition.lock != lock || head->peer != peer)
		tap__diag("lock %u, want %u; peer %u, want %u", head->condition.lock, lock,
			  head->peer, peer);
	return walked(";f", 0) && head->condition.lock == lock && head->peer == peer;
}

static void set_ready(bool ready)
{
	uint64_t node = thread + o->lock_ready;

	put(node, ready ? ractor : node);
}

static uint64_t make_native(uint64_t its_thread)
{
	uint64_t native = its_thread;

	if (o->lock_native)
		put(its_thread + o->lock_native, native = make(THREAD_BYTES));
	return native;
}

static void reset_with_lock(size_t nth, const struct c_library *libc)
{
	uint64_t native, pthread;

	reset(nth);
	proc.libc = *libc;
	walker__attach(&proc);
	call("f");
	/* The rb_vm_t of 2.7 exists already. */
	ractor = get(thread + o->lock_of) ?: make(RACTOR_BYTES);
	put(thread + o->lock_of, ractor);
	cond = make_native(thread) + o->lock_cond;
	runner = make(THREAD_BYTES);
	native = make_native(runner);
	if (o->lock_tid_is_pthread) {
		pthread = make(GLIBC_TID + 8);
		put(native + o->lock_tid, pthread);
		put32(pthread + libc->tid, RUNNER_TID);
	} else {
		put32(native + o->lock_tid, RUNNER_TID);
	}
	put(ractor + o->lock_running, 0);
}

static void test_lock(void)
{
	uint64_t lock = ractor + o->lock_start, running = ractor + o->lock_running;

	ok(is_lock(0, LOCK_FREE, 0), "%s: nobody has the lock", version);
	put(running, thread);
	ok(is_lock(0, LOCK_HELD, 0), "%s: the thread has it", version);
	ok(is_lock(cond, LOCK_HELD, 0), "%s: and sleeps with it", version);
	put(running, runner);
	ok(is_lock(0, LOCK_FREE, 0), "%s: another thread has it", version);
	ok(is_lock(cond, LOCK_FREE, 0), "%s: it sleeps, and never wanted it", version);
	set_ready(false);
	ok(is_lock(cond, LOCK_FREE, 0), "%s: it sleeps, and does not want it", version);
	set_ready(true);
	ok(is_lock(cond + 40, LOCK_WAITED, RUNNER_TID), "%s: it waits for its turn", version);
	ok(is_lock(cond + 48, LOCK_FREE, 0), "%s: it waits for something else", version);
	ok(is_lock(0, LOCK_FREE, 0), "%s: it is about to wait", version);
	set_ready(false);
	ok(is_lock(lock + 8, LOCK_WAITED, RUNNER_TID), "%s: for the lock's own mutex", version);
	numbers.level = 1;
	ok(is_lock(lock + 8, LOCK_WAITED, 0), "%s: ids of another PID namespace are not told",
	   version);
	numbers.level = 0;
	put(running, 0);
	ok(is_lock(lock + 8, LOCK_WAITED, 0), "%s: and nobody has it", version);
	put(running, NOWHERE);
	ok(is_lock(lock + 8, LOCK_WAITED, 0), "%s: a thread that cannot be read", version);
}

/* musl's condition variables have a list of their waiters. */
static void test_musl(size_t nth)
{
	static const struct c_library musl = { .values = 128, .tid = 48 };
	uint64_t waiter, front;

	reset_with_lock(nth, &musl);
	if (proc.state == RUBY_STATE_KEY) {
		uint64_t values = make(8 * MUSL_KEYS_MAX);

		put(tcb + musl.values, values);
		put(values + 8 * KEY, thread);
	}
	walker__attach(&proc);
	waiter = make(32);
	put(ractor + o->lock_running, runner);
	set_ready(true);
	ok(is_lock(waiter + MUSL_WAITER_BARRIER, LOCK_FREE, 0), "%s: musl: for something else",
	   version);
	front = cond + LOCK_COND_BYTES;
	put(cond + MUSL_COND_HEAD, waiter);
	ok(is_lock(waiter + MUSL_WAITER_BARRIER, LOCK_FREE, 0), "%s: musl: for an interrupt",
	   version);
	put(front + MUSL_COND_HEAD, waiter);
	ok(is_lock(waiter + MUSL_WAITER_BARRIER, LOCK_WAITED, RUNNER_TID),
	   "%s: musl: it waits for its turn", version);
	put(front + MUSL_COND_HEAD, NOWHERE);
	ok(is_lock(waiter + MUSL_WAITER_BARRIER, LOCK_FREE, 0), "%s: musl: by nothing readable",
	   version);
	set_ready(false);
	put(front + MUSL_COND_HEAD, waiter);
	ok(is_lock(waiter + MUSL_WAITER_BARRIER, LOCK_FREE, 0), "%s: musl: it sleeps", version);
}

static void test_unknown(void)
{
	put(ractor + o->lock_running, thread);
	host__set(&cfg_locks, 0);
	ok(is_lock(0, LOCK_UNKNOWN, 0), "%s: nobody asks", version);
	host__set(&cfg_locks, 1);
	put(thread + o->lock_of, NOWHERE);
	ok(is_lock(0, LOCK_UNKNOWN, 0), "%s: a lock that cannot be read", version);
}

int main(void)
{
	walker__open();
	host__set(&cfg_locks, 1);
	host.task.thread_pid = &numbers;
	for (size_t nth = 0; nth < ARRAY_SIZE(synthetic_versions); nth++) {
		if (!reset(nth))
			continue;
		reset_with_lock(nth, &(struct c_library) { .tid = GLIBC_TID });
		test_lock();
		test_unknown();
		test_musl(nth);
	}
	walker__close();
	return tap__done();
}
