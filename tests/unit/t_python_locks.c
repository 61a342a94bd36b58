// SPDX-License-Identifier: GPL-2.0-or-later
/* Owners of locks of Python's threading module, in a process that does not exist. Covers states of
 * real processes (tests/live/dump_python_locks.t), and states that no process has. */
#include "runtimes/python/python_frames.h"
#include "runtimes/python/python_locks.h"
#include "tests/unit/python_synthetic.h"

#define FUTEX_FS 0x7f0000001000ULL /* fs base of the waiting thread */
#define OTHER_FS 0x7f0000002000ULL

static const struct python_layout *layout;
static uint64_t lock_type, rlock_type, code_type, bound_type, descriptor_type, type_type;
static uint64_t futex;
static struct runtime_waiter waiter;

static uint64_t make_text_of_c(const char *text)
{
	uint64_t at = make(strlen(text) + 1);

	memcpy((void *)at, text, strlen(text) + 1);
	return at;
}

static uint64_t make_type(const char *name, uint64_t bytes)
{
	uint64_t type = make(512);

	put(type + 8, type_type);
	put(type + 24, make_text_of_c(name));
	put(type + 32, bytes);
	return type;
}

static uint64_t make_object(uint64_t type, size_t size)
{
	uint64_t object = make(size);

	put(object, 1);
	put(object + 8, type);
	return object;
}

static bool has_mutexes(void)
{
	return minor >= 14;
}

/* Makes the thread wait for @lock: by the lock's own futex, or by that of an entry for the mutex.
 */
static void wait_for(uint64_t lock)
{
	futex = make(32);
	if (has_mutexes()) {
		put(futex, lock + 16);
		futex += 8;
	} else {
		put(lock + 16, futex);
	}
	waiter = (struct runtime_waiter) { .fs_base = FUTEX_FS, .futex = futex };
}

static uint64_t make_lock(void)
{
	return make_object(lock_type, 48);
}

static uint64_t make_rlock(uint64_t owner)
{
	uint64_t lock = make_object(rlock_type, 64);

	put(lock + 24, owner);
	put(lock + 32, 1);
	return lock;
}

/* Calls a function whose stack has room for 8 values, @live of which its block contains. Returns
 * the frame's stack. */
static uint64_t call_with(unsigned live)
{
	static const uint8_t table[] = { 128, 63, 0, 0 }; /* units 0 to 62; depth: the last byte */
	uint64_t code = make_code("f"), bytes, stack;

	put(code + 8, code_type);
	put32(code + layout->stack_size, 8);
	call_code(code);
	make(512); /* rest of the frame */
	if (layout->blocks) {
		stack = frame + layout->locals + 64;
		put(frame + layout->stack, stack);
		put32(frame + layout->n_blocks, 1);
		put32(frame + layout->blocks + 8, live);
	} else {
		put32(code + layout->n_locals, 2);
		stack = frame + layout->stack + 16;
		bytes = make(64);
		put(bytes + 16, sizeof(table));
		memcpy((void *)(bytes + 32), table, sizeof(table));
		*(uint8_t *)(bytes + 32 + 3) = live << 1;
		put(code + layout->exceptions, bytes);
	}
	return stack;
}

/* Writes the values that `with` pushes to a stack, at @at. */
static void put_exit(uint64_t at, uint64_t lock, const char *method)
{
	uint64_t definition = make(32), bound = make_object(bound_type, 64);

	put(definition, make_text_of_c(method));
	if (minor >= 14) {
		bound = make_object(descriptor_type, 64);
		put(bound + 40, definition);
		put(at, bound | 1);
		put(at + 8, lock | 1);
		return;
	}
	put(bound + 16, definition);
	put(bound + 24, lock);
	put(at, bound);
}

#define EXIT (minor >= 14 ? 2U : 1U) /* slots of these values */

static void begin(unsigned of_minor)
{
	reset(of_minor);
	layout = python_layout__find(minor);
	type_type = 0;
	type_type = make_type("type", 0);
	lock_type = make_type("_thread.lock", has_mutexes() ? 24 : 40);
	rlock_type = make_type("_thread.RLock", has_mutexes() ? 40 : 48);
	code_type = make_type("code", 0);
	bound_type = make_type("builtin_function_or_method", 0);
	descriptor_type = make_type("method_descriptor", 0);
	put(tstate + o->tstate_thread_id, FUTEX_FS);
}

/* Makes the builder continue with a second thread. */
static void other_thread(void)
{
	make_tstate(get(proc.interpreters));
	put(tstate + o->tstate_thread_id, OTHER_FS);
}

static void find(void)
{
	struct python_threads process = { .pid = getpid(), .interpreters = proc.interpreters };

	process.version = *python_version__find(minor);
	process.version.offsets = *o;
	python_locks__find(&process, &waiter, 1);
}

static bool said(const char *what, uint64_t address, uint64_t holder)
{
	bool good = what ? waiter.what && !strcmp(waiter.what, what) : !waiter.what;

	good = good && waiter.address == address && waiter.holder.fs_base == holder;
	if (!good)
		tap__diag("3.%u: %s at %#lx, held by %#lx; want %s at %#lx, held by %#lx", minor,
			  waiter.what ?: "nothing", (long)waiter.address,
			  (long)waiter.holder.fs_base, what ?: "nothing", (long)address,
			  (long)holder);
	return good;
}

static void test_locks(void)
{
	uint64_t lock, stack;

	begin(minor);
	lock = make_lock();
	wait_for(lock);
	stack = call_with(0);
	put(stack, lock);
	find();
	ok(said("a Lock", lock, 0), "3.%u: a Lock that is held by nobody knows whom", minor);
	other_thread();
	stack = call_with(EXIT);
	put_exit(stack, lock, "__exit__");
	wait_for(lock);
	find();
	ok(said("a Lock", lock, OTHER_FS), "3.%u: who is inside of with", minor);
	put_exit(stack, lock, "acquire");
	wait_for(lock);
	find();
	ok(said("a Lock", lock, 0), "3.%u: another method of it", minor);
	put_exit(stack + 8 * EXIT, lock, "__exit__");
	wait_for(lock);
	find();
	ok(said("a Lock", lock, 0), "3.%u: what is left over above", minor);
	lock = make_rlock(OTHER_FS);
	wait_for(lock);
	put(stack, lock);
	frame = 0;
	put(get(tstate + PYTHON_TSTATE_NEXT) + o->tstate_thread_id, OTHER_FS);
	put(tstate + o->tstate_thread_id, FUTEX_FS);
	find();
	ok(said("an RLock", lock, OTHER_FS), "3.%u: an RLock, by its owner", minor);
}

/* Two threads are inside: one of them left in a way that its frame does not show. */
static void test_several(void)
{
	uint64_t lock;

	begin(minor);
	lock = make_lock();
	put_exit(call_with(EXIT), lock, "__exit__");
	other_thread();
	put_exit(call_with(EXIT), lock, "__exit__");
	wait_for(lock);
	find();
	ok(said("a Lock", lock, 0) || !waiter.what, "3.%u: nobody is picked of two", minor);
}

/* No search reads beyond the valid memory, or without end. */
static void test_hostile(void)
{
	static const uint64_t words[] = { 1, 0x7fffffff, NOWHERE };
	uint64_t lock, stack, start;
	size_t n = 0;

	begin(minor);
	lock = make_lock();
	wait_for(lock);
	other_thread();
	stack = call_with(EXIT);
	put_exit(stack, lock, "__exit__");
	start = frame;
	for (uint64_t at = lock; at < (uintptr_t)arena + used; at += 8) {
		uint64_t was = get(at);

		for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
			put(at, words[i]);
			waiter = (struct runtime_waiter) { .fs_base = FUTEX_FS, .futex = futex };
			find();
			n += !waiter.what;
		}
		put(at, was);
	}
	ok(n, "3.%u: words of all kinds anywhere: nothing is told of %zu", minor, n);
	put(frame + o->frame_previous, start);
	waiter = (struct runtime_waiter) { .fs_base = FUTEX_FS, .futex = futex };
	find();
	ok(said("a Lock", lock, OTHER_FS), "3.%u: frames in a circle come to an end", minor);
}

int main(void)
{
	walker__open();
	for (minor = MINOR_FIRST; minor <= MINOR_LAST; minor++) {
		test_locks();
		test_several();
		if (minor % 2 == 0) /* one of each kind */
			test_hostile();
	}
	walker__close();
	return tap__done();
}
