// SPDX-License-Identifier: GPL-2.0-or-later
/* The CPython walker's reports about the GIL in a made-up process: held, free, waited for (and its
 * owner), or unknown. The stack never depends on them. */
#include "tests/unit/python_synthetic.h"

#define HOLDER_TID 4711
#define GLIBC_TID  720
#define ALIEN_TID  42 /* ID in another PID namespace */

static struct pid numbers;   /* IDs of the sampled thread */
static uint64_t gil, holder; /* the lock, and another thread's PyThreadState */

static bool is_lock(enum lock_state lock, uint32_t peer)
{
	const struct rec_sample *head = &host.sample.head;

	if (!walked("|;f", 0))
		return false;
	if (head->condition.lock != lock || head->peer != peer)
		tap__diag("lock %u, want %u; peer %u, want %u", head->condition.lock, lock,
			  head->peer, peer);
	return head->condition.lock == lock && head->peer == peer;
}

static bool runs_with(enum lock_state lock, uint32_t peer)
{
	run();
	return is_lock(lock, peer);
}

static bool waits_with(uint64_t address, enum lock_state lock, uint32_t peer)
{
	futex = address;
	run();
	futex = 0;
	return is_lock(lock, peer);
}

static void set_gil(uint64_t last_holder, uint32_t locked)
{
	put(gil + PYTHON_GIL_HOLDER, last_holder);
	put32(gil + PYTHON_GIL_LOCKED, locked);
}

static uint64_t make_gil(uint64_t interp)
{
	uint64_t at = make(PYTHON_GIL_BYTES);

	if (o->interp_gil)
		put(interp + o->interp_gil, at);
	else
		proc.gil = at;
	return at;
}

/* Resets to a thread that runs f(), and one that may hold the lock. */
static void reset_with_gil(void)
{
	uint64_t own, its;

	reset(minor);
	gil = make_gil(get(tstate + PYTHON_TSTATE_INTERP));
	proc.gil_holder = PYTHON_GIL_HOLDER;
	proc.gil_locked = PYTHON_GIL_LOCKED;
	proc.gil_bytes = PYTHON_GIL_BYTES;
	proc.libc = (struct c_library) { .tid = GLIBC_TID };
	walker__attach(&proc);
	enter();
	call("f");
	own = thread;
	thread = make(1024);
	holder = make(512);
	put(holder + o->tstate_thread_id, thread);
	its = o->tstate_native_id ? holder + o->tstate_native_id : thread + proc.libc.tid;
	put32(its, HOLDER_TID);
	thread = own;
}

static void test_lock(void)
{
	reset_with_gil();
	set_gil(tstate, 1);
	ok(runs_with(LOCK_HELD, 0), "3.%u: the thread has the lock", minor);
	ok(waits_with(gil + 40, LOCK_HELD, 0), "3.%u: it has it, in a wait for its mutex", minor);
	set_gil(tstate, 0);
	ok(runs_with(LOCK_FREE, 0), "3.%u: it had it last", minor);
	ok(waits_with(gil + 40, LOCK_WAITED, 0), "3.%u: it waits, and nobody has it", minor);
	set_gil(holder, 1);
	ok(runs_with(LOCK_FREE, 0), "3.%u: another thread has it", minor);
	ok(waits_with(gil, LOCK_WAITED, HOLDER_TID), "3.%u: it waits for that one", minor);
	ok(waits_with(gil + PYTHON_GIL_BYTES - 4, LOCK_WAITED, HOLDER_TID),
	   "3.%u: at the lock's end", minor);
	ok(waits_with(gil + PYTHON_GIL_BYTES, LOCK_FREE, 0), "3.%u: for something behind it",
	   minor);
	ok(waits_with(gil - 4, LOCK_FREE, 0), "3.%u: for something before it", minor);
	numbers.level = 1;
	ok(waits_with(gil + 40, LOCK_WAITED, 0), "3.%u: ids of another PID namespace are not told",
	   minor);
	numbers.level = 0;
	set_gil(NOWHERE, 1);
	ok(waits_with(gil + 40, LOCK_WAITED, 0), "3.%u: a holder that cannot be read", minor);
	set_gil(0, UINT32_MAX);
	ok(waits_with(gil + 40, LOCK_UNKNOWN, 0), "3.%u: there is no lock yet", minor);
	set_gil(tstate, 77);
	ok(runs_with(LOCK_UNKNOWN, 0), "3.%u: this is no lock", minor);
}

static void test_unknown(void)
{
	reset_with_gil();
	set_gil(tstate, 1);
	host__set(&cfg_locks, 0);
	ok(runs_with(LOCK_UNKNOWN, 0), "3.%u: nobody asks", minor);
	host__set(&cfg_locks, 1);
	if (o->interp_gil)
		put(get(tstate + PYTHON_TSTATE_INTERP) + o->interp_gil, NOWHERE);
	else
		proc.gil = NOWHERE;
	walker__attach(&proc);
	ok(runs_with(LOCK_UNKNOWN, 0), "3.%u: a lock that cannot be read", minor);
	if (o->interp_gil)
		put(tstate + PYTHON_TSTATE_INTERP, NOWHERE);
	else
		proc.gil = 0;
	walker__attach(&proc);
	ok(runs_with(LOCK_UNKNOWN, 0), "3.%u: a lock that cannot be found", minor);
}

/* 3.6: variables in another order. */
static void test_variables(void)
{
	uint64_t locked;

	reset_with_gil();
	locked = gil - 64;
	set_gil(0, 0);
	proc.gil_holder = 160;
	proc.gil_locked = (uint64_t)-64;
	walker__attach(&proc);
	put(gil + 160, tstate);
	put32(locked, 1);
	ok(runs_with(LOCK_HELD, 0), "3.%u: variables: the thread has the lock", minor);
	put(gil + 160, holder);
	ok(waits_with(gil + 8, LOCK_WAITED, HOLDER_TID), "3.%u: variables: it waits for it", minor);
	put32(locked, 0);
	ok(runs_with(LOCK_FREE, 0), "3.%u: variables: nobody has it", minor);
}

/* musl's condition variables have a list of their waiters. */
static void test_musl(void)
{
	static const uint16_t conds[] = PYTHON_GIL_CONDS;
	uint64_t oldest, newest, its;

	reset_with_gil();
	proc.libc = musl;
	memcpy(proc.gil_conds, conds, sizeof(conds));
	walker__attach(&proc);
	set_state(tstate);
	its = get(holder + o->tstate_thread_id);
	put32(its + proc.libc.tid, HOLDER_TID);
	set_gil(holder, 1);
	newest = make(32);
	oldest = make(32);
	for (size_t i = 0; i < ARRAY_SIZE(conds); i++) {
		put(gil + conds[i] + MUSL_COND_HEAD, newest);
		put(newest + 8, oldest);
		put(oldest, newest);
		ok(waits_with(newest + MUSL_WAITER_BARRIER, LOCK_WAITED, HOLDER_TID),
		   "3.%u: musl: the newest that waits by condition variable %zu", minor, i);
		ok(waits_with(oldest + MUSL_WAITER_BARRIER, LOCK_WAITED, HOLDER_TID),
		   "3.%u: musl: the oldest", minor);
		ok(waits_with(oldest + MUSL_WAITER_BARRIER - 4, LOCK_FREE, 0),
		   "3.%u: musl: for another word there", minor);
		put(oldest, oldest);
		ok(waits_with(oldest + MUSL_WAITER_BARRIER, LOCK_FREE, 0),
		   "3.%u: musl: a list that leads nowhere", minor);
		put(oldest, NOWHERE);
		ok(waits_with(oldest + MUSL_WAITER_BARRIER, LOCK_FREE, 0),
		   "3.%u: musl: one that cannot be read", minor);
		put(gil + conds[i] + MUSL_COND_HEAD, 0);
		ok(waits_with(newest + MUSL_WAITER_BARRIER, LOCK_FREE, 0),
		   "3.%u: musl: nobody waits by it", minor);
	}
	ok(waits_with(gil + 80 + 4, LOCK_WAITED, HOLDER_TID), "3.%u: musl: its mutex", minor);
	if (!o->tstate_native_id) {
		proc.libc.tid = 0;
		walker__attach(&proc);
		ok(waits_with(gil + 80 + 4, LOCK_WAITED, 0), "3.%u: musl: of an unknown version",
		   minor);
	}
}

/* The first interpreter's code in the thread made and called a second one; the thread has a state
 * in both. */
static void test_interpreters(void)
{
	uint64_t first = tstate, first_gil, second_gil;

	reset_with_gil();
	first = tstate;
	first_gil = second_gil = gil;
	make_tstate(make_interpreter());
	if (o->interp_gil)
		second_gil = make_gil(get(tstate + PYTHON_TSTATE_INTERP));
	set_gil(first, 1);
	run();
	is_int(host.sample.head.condition.lock, LOCK_HELD,
	       "3.%u: with the first interpreter's state", minor);
	set_gil(tstate, 1);
	run();
	is_int(host.sample.head.condition.lock, LOCK_HELD, "3.%u: with the second one's", minor);
	if (first_gil == second_gil)
		return;
	gil = second_gil;
	set_gil(tstate, 1);
	gil = first_gil;
	set_gil(holder, 1);
	futex = first_gil + 40;
	run();
	ok(host.sample.head.condition.lock == LOCK_WAITED && host.sample.head.peer == HOLDER_TID,
	   "3.%u: with one interpreter's lock it waits for the other's", minor);
	futex = 0;
	run();
	is_int(host.sample.head.condition.lock, LOCK_HELD, "3.%u: the lock of one of them", minor);
	gil = second_gil;
	set_gil(tstate, 0);
	run();
	is_int(host.sample.head.condition.lock, LOCK_FREE, "3.%u: neither", minor);
}

int main(void)
{
	walker__open();
	host__set(&cfg_locks, 1);
	host.task.thread_pid = &numbers;
	numbers.numbers[1].nr = ALIEN_TID;
	for (minor = MINOR_FIRST; minor <= MINOR_LAST; minor++) {
		test_lock();
		test_unknown();
		test_interpreters();
		test_musl();
		if (minor == 6)
			test_variables();
	}
	walker__close();
	return tap__done();
}
