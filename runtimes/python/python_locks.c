// SPDX-License-Identifier: GPL-2.0-or-later
/* Finds the lock that a thread waits for by the address of its futex, and the lock's holder.
 *
 * The lock of a futex:
 *   semaphore (Python/thread_pthread.h: PyThread_type_lock): the futex is its first word, and the
 *     lock object points to it. The object is on the value stack of the function that waits.
 *   PyMutex (Lock from a release of 3.13, RLock from 3.14 on; Python/parking_lot.c): the futex is
 * in a struct wait_entry {park_arg, addr, sema, ...} of the thread. Its addr is the mutex, which is
 *     the first member of the lock object.
 *
 * The holder: an RLock has its owner (Modules/_threadmodule.c; _RLock of Lib/threading.py). A Lock
 * has none. But a function inside `with lock:` has the lock's bound __exit__ on its value stack
 * (from 3.14 on __exit__, and the lock behind it). The same holds for `with condition:` and the
 * condition's lock. The holder is unknown if it called acquire() in another way. */
#include "runtimes/python/python_locks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/sort.h"
#include "core/base/u64map.h"
#include "core/base/util.h"
#include "runtimes/python/python_frames.h"

#define READS_MAX  1000000 /* for all threads, about 0.5 us each */
#define FRAMES_MAX 10000
#define WORD	   8

#define MUTEX_SINCE	    13
#define SEPARATE_EXIT_SINCE 14 /* LOAD_SPECIAL of Python/bytecodes.c */

/* Modules/_threadmodule.c: lockobject, which with a mutex has nothing else; rlockobject {lock,
 * owner, count}, and with a semaphore a list of weak references. */
#define LOCK_LOCK	  16
#define RLOCK_OWNER	  24
#define RLOCK_COUNT	  32
#define LOCK_MUTEX_BYTES  8 /* behind the head of all objects */
#define RLOCK_MUTEX_BYTES 24

/* Python/parking_lot.c: struct wait_entry, from its semaphore on backwards */
#define WAITED_ADDRESS (-8)

/* Include/methodobject.h (PyCFunctionObject: m_ml, m_self), Include/descrobject.h
 * (PyMethodDescrObject: d_method), Include/classobject.h (PyMethodObject: im_func, im_self) */
#define CALLED	       16
#define CALLED_SELF    24
#define DESCRIPTOR_DEF 40

enum kind { KIND_NONE, KIND_LOCK, KIND_RLOCK };

/* Somebody is inside of `with`. */
struct hold {
	uint64_t key;	  /* address of its semaphore or mutex, by which waiters find it */
	uint64_t lock;	  /* object */
	uint64_t fs_base; /* fs base of the holding thread */
};

struct search {
	struct python_reader reader;
	struct runtime_waiter *waiters;
	struct u64map waiting; /* FS base -> index of the waiter, from 1 on */
	struct hold *holds;    /* sorted by key once all are found */
	size_t n_holds, cap_holds;
	/* --- state of the thread that is searched --- */
	uint64_t fs_base;
	uint64_t released[16]; /* objects of type Condition in whose wait() it is */
	size_t n_released;
};

static enum kind kind_of(struct search *search, uint64_t object)
{
	return python_object__is(&search->reader, object, "_thread.lock")    ? KIND_LOCK
	       : python_object__is(&search->reader, object, "_thread.RLock") ? KIND_RLOCK
									     : KIND_NONE;
}

static uint64_t head_of(const struct search *search)
{
	return search->reader.version->offsets.object_bytes;
}

static bool has_mutex(struct search *search, uint64_t lock, enum kind kind)
{
	return python_object__bytes(&search->reader, lock) - head_of(search) ==
	       (kind == KIND_LOCK ? LOCK_MUTEX_BYTES : RLOCK_MUTEX_BYTES);
}

static uint64_t key_of(struct search *search, uint64_t lock, enum kind kind)
{
	return has_mutex(search, lock, kind)
		       ? lock + head_of(search)
		       : python_object__field(&search->reader, lock, LOCK_LOCK);
}

/* --- who is inside of `with` --- */

/* The lock that the object of type Condition has, if it is one of C's. */
static uint64_t lock_of(struct search *search, uint64_t condition)
{
	return python_object__get(&search->reader, condition, "_lock");
}

static void add_hold(struct search *search, uint64_t lock)
{
	enum kind kind = kind_of(search, lock);

	if (kind != KIND_LOCK || array__reserve(&search->holds, &search->cap_holds,
						search->n_holds + 1, sizeof(*search->holds)))
		return;
	search->holds[search->n_holds++] =
		(struct hold) { key_of(search, lock, kind), lock, search->fs_base };
}

/* A method of C's, by its PyMethodDef, whose first member is the name. */
static bool is_exit(struct search *search, uint64_t definition)
{
	return python_reader__text_is(&search->reader,
				      python_reader__at(&search->reader, definition), "__exit__");
}

/* A method of Lib/threading.py's Condition. */
static bool is_exit_of_condition(struct search *search, uint64_t function, uint64_t self)
{
	struct python_reader *reader = &search->reader;
	const struct python_layout *layout = python_layout__find(reader->version->minor);

	return python_object__is(reader, function, "function") &&
	       python_object__is_a(reader, self, "Condition") &&
	       python_code__is(reader,
			       python_object__field(reader, function, layout->function_code),
			       "__exit__", "Condition.__exit__", "/threading.py");
}

static void see_condition(struct search *search, uint64_t condition)
{
	for (size_t i = 0; i < search->n_released; i++)
		if (lock_of(search, search->released[i]) == lock_of(search, condition))
			return;
	add_hold(search, lock_of(search, condition));
}

/* `outer`: the slot above. */
static void see_value(struct search *search, uint64_t value, uint64_t outer)
{
	struct python_reader *reader = &search->reader;
	uint64_t called, self;

	if (reader->version->minor >= SEPARATE_EXIT_SINCE) {
		if (python_object__is(reader, value, "method_descriptor")) {
			if (is_exit(search, python_object__field(reader, value, DESCRIPTOR_DEF)))
				add_hold(search, outer);
		} else if (is_exit_of_condition(search, value, outer)) {
			see_condition(search, outer);
		}
		return;
	}
	if (python_object__is_a(reader, value, "builtin_function_or_method")) {
		if (is_exit(search, python_object__field(reader, value, CALLED)))
			add_hold(search, python_object__field(reader, value, CALLED_SELF));
	} else if (python_object__is(reader, value, "method")) {
		called = python_object__field(reader, value, CALLED);
		self = python_object__field(reader, value, CALLED_SELF);
		if (is_exit_of_condition(search, called, self))
			see_condition(search, self);
	}
}

/* The object of type Condition whose wait() this is; 0: it is something else. That has released the
 * lock which the caller is inside of. */
static uint64_t waits_for_condition(struct search *search, const struct python_frame *frame)
{
	uint64_t self = python_frame__value(&search->reader, frame->locals, 0);

	return python_code__is(&search->reader, frame->code, "wait", "Condition.wait",
			       "/threading.py") &&
			       python_object__is_a(&search->reader, self, "Condition")
		       ? self
		       : 0;
}

static void see_frame(struct search *search, const struct python_frame *frame)
{
	uint64_t condition = waits_for_condition(search, frame), value, outer;

	if (condition && search->n_released < ARRAY_SIZE(search->released))
		search->released[search->n_released++] = condition;
	value = python_frame__value(&search->reader, frame->stack, 0);
	for (unsigned i = 0; i < frame->n_live; i++, value = outer) {
		outer = i + 1 < frame->n_live
				? python_frame__value(&search->reader, frame->stack, i + 1)
				: 0;
		if (value)
			see_value(search, value, outer);
	}
}

static bool find_holds(void *ctx, uint64_t tstate, uint64_t fs_base)
{
	struct search *search = ctx;
	struct python_frame frame;
	bool more = python_frame__innermost(&search->reader, tstate, &frame);

	search->fs_base = fs_base;
	search->n_released = 0;
	for (int i = 0; i < FRAMES_MAX && more; i++) {
		see_frame(search, &frame);
		more = python_frame__caller(&search->reader, &frame);
	}
	return search->reader.reads_left > 0;
}

/* --- the lock of a wait --- */

struct wait {
	enum kind kind;
	uint64_t lock;		   /* object; 0: unknown */
	uint64_t key;		   /* as in a hold */
	struct python_frame frame; /* the function that waits */
};

/* Returns the lock that is @value, or the lock whose method is @value. */
static uint64_t lock_in(struct search *search, uint64_t value)
{
	struct python_reader *reader = &search->reader;

	return python_object__is_a(reader, value, "builtin_function_or_method")
		       ? python_object__field(reader, value, CALLED_SELF)
		       : value;
}

/* Returns true if the object was not freed. Slots above those in use have old values: their objects
 * may be freed, and the semaphore may belong to another lock by now. A live object begins with its
 * number of references, a freed one with a pointer. */
static bool is_there(struct search *search, uint64_t object)
{
	uint64_t references = python_reader__at(&search->reader, object);

	if (head_of(search) >
	    LOCK_LOCK) /* a head without the GIL: two counts, another kind of freeing */
		return true;
	return references && references <= UINT32_MAX;
}

static void find_by_semaphore(struct search *search, uint64_t futex, struct wait *ret)
{
	uint64_t lock;
	enum kind kind;

	for (unsigned i = 0; i < ret->frame.n_max; i++) {
		lock = lock_in(search, python_frame__value(&search->reader, ret->frame.stack, i));
		kind = lock == ret->lock ? KIND_NONE : kind_of(search, lock);
		if (kind == KIND_NONE || has_mutex(search, lock, kind) ||
		    key_of(search, lock, kind) != futex || !is_there(search, lock))
			continue;
		if (ret->lock) { /* one of them is left over */
			ret->lock = 0;
			ret->kind = KIND_NONE;
			return;
		}
		ret->lock = lock;
		ret->kind = kind;
	}
}

static void find_wait(struct search *search, uint64_t futex, struct wait *ret)
{
	uint64_t mutex = 0, lock;
	enum kind kind;

	if (search->reader.version->minor >= MUTEX_SINCE)
		mutex = python_reader__at(&search->reader, futex + WAITED_ADDRESS);
	lock = mutex - head_of(search);
	kind = mutex > head_of(search) ? kind_of(search, lock) : KIND_NONE;
	ret->key = futex;
	if (kind != KIND_NONE && has_mutex(search, lock, kind)) {
		ret->key = mutex;
		ret->lock = lock;
		ret->kind = kind;
	} else if (ret->frame.at) {
		find_by_semaphore(search, futex, ret);
	}
}

static void take_rlock(struct search *search, const struct wait *wait,
		       struct runtime_waiter *waiter)
{
	struct python_reader *reader = &search->reader;

	waiter->what = "an RLock";
	waiter->address = wait->lock;
	if (has_mutex(search, wait->lock, KIND_RLOCK) ||
	    python_object__field(reader, wait->lock, RLOCK_COUNT))
		waiter->holder.fs_base = python_object__field(reader, wait->lock, RLOCK_OWNER);
}

/* threading._RLock, where it is Python code: {_block: a Lock, _owner, _count}. */
static bool take_python_rlock(struct search *search, const struct wait *wait,
			      struct runtime_waiter *waiter)
{
	struct python_reader *reader = &search->reader;
	uint64_t self = wait->frame.at ? python_frame__value(reader, wait->frame.locals, 0) : 0;

	if (!wait->lock || !self || !python_object__is_a(reader, self, "_RLock") ||
	    python_object__get(reader, self, "_block") != wait->lock)
		return false;
	waiter->what = "an RLock";
	waiter->address = self;
	if (!python_int__get(reader, python_object__get(reader, self, "_owner"),
			     &waiter->holder.fs_base))
		waiter->holder.fs_base = 0;
	return true;
}

static int by_key(const void *a, const void *b)
{
	const struct hold *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

/* One who is inside of `with`, or none if that may be several. */
static void take_lock(struct search *search, const struct wait *wait, struct runtime_waiter *waiter)
{
	uint64_t condition = wait->frame.at ? waits_for_condition(search, &wait->frame) : 0;
	size_t i = sorted__count_up_to(search->holds, search->n_holds, sizeof(*search->holds),
				       wait->key);
	const struct hold *found = NULL;
	bool several = false;

	if (condition && wait->kind == KIND_LOCK) {
		waiter->what = "a Condition";
		waiter->address = condition;
		return;
	}
	for (; i && search->holds[i - 1].key == wait->key && !several; i--) {
		several = found && found->fs_base != search->holds[i - 1].fs_base;
		found = &search->holds[i - 1];
	}
	if (!found && !wait->lock)
		return;
	waiter->what = "a Lock";
	waiter->address = wait->lock ?: found->lock;
	waiter->holder.fs_base = found && !several ? found->fs_base : 0;
}

static void see_waiter(struct search *search, uint64_t tstate, struct runtime_waiter *waiter)
{
	struct wait wait = {};

	if (!python_frame__innermost(&search->reader, tstate, &wait.frame))
		wait.frame.at = 0;
	find_wait(search, waiter->futex, &wait);
	if (wait.kind == KIND_RLOCK)
		take_rlock(search, &wait, waiter);
	else if (!take_python_rlock(search, &wait, waiter))
		take_lock(search, &wait, waiter);
}

static bool find_waits(void *ctx, uint64_t tstate, uint64_t fs_base)
{
	struct search *search = ctx;
	uint32_t i = u64map__get(&search->waiting, fs_base);

	if (i && !search->waiters[i - 1].what)
		see_waiter(search, tstate, &search->waiters[i - 1]);
	return search->reader.reads_left > 0;
}

void python_locks__find(const struct python_threads *process, struct runtime_waiter *waiters,
			size_t n)
{
	struct search search = {
		.reader = { .pid = process->pid,
			    .version = &process->version,
			    .reads_left = READS_MAX },
		.waiters = waiters,
	};
	int rc = python_layout__find(process->version.minor) ? 0 : -ENOTSUP;

	for (size_t i = 0; i < n && !rc; i++)
		if (waiters[i].futex)
			rc = u64map__put(&search.waiting, waiters[i].fs_base, i + 1);
	if (!rc && search.waiting.n) {
		python_states__each(&search.reader, process->interpreters, find_holds, &search);
		if (search.n_holds)
			qsort(search.holds, search.n_holds, sizeof(*search.holds), by_key);
		search.reader.reads_left = READS_MAX;
		python_states__each(&search.reader, process->interpreters, find_waits, &search);
	}
	free(search.holds);
	u64map__done(&search.waiting);
}
