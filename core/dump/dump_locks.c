// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/dump/dump_state.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

/* glibc's pthread_mutex_t on x86-64 (sysdeps/x86/nptl/bits/struct_mutex.h): lock, count, owner,
 * nusers, kind. A waiter in pthread_mutex_lock sets the lock to 2 and waits for a change. No other
 * lock of glibc has the id of a thread at that place. */
struct mutex {
	int32_t lock;
	uint32_t count;
	uint32_t owner;
	uint32_t n_users;
	int32_t kind;
};
#define MUTEX_WAITED 2
#define MUTEX_KINDS  0x3ff /* all defined bits (nptl/pthreadP.h) */

static const struct dump_thread *find(const struct dump_process *process, uint32_t tid)
{
	for (size_t i = 0; i < process->n_threads; i++)
		if (process->threads[i].tid == tid)
			return &process->threads[i];
	return NULL;
}

void dump__see_mutex(const struct dump *dump, struct dump_thread *thread)
{
	uint64_t command = thread->args[1] & FUTEX_CMD_MASK & 0xffffffff;
	uint64_t address = thread->args[0];
	struct mutex mutex;

	if (thread->call != SYSCALL_FUTEX || thread->lock == LOCK_WAITED || !dump->own_ids ||
	    memory__read(dump->memory, address, &mutex, sizeof(mutex)))
		return;
	if (command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2) {
		mutex.owner = (uint32_t)mutex.lock & FUTEX_TID_MASK;
	} else if ((command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET) ||
		   (uint32_t)thread->args[2] != MUTEX_WAITED || mutex.lock != MUTEX_WAITED ||
		   mutex.kind & ~MUTEX_KINDS || !mutex.n_users) {
		return;
	}
	if (!mutex.owner || !find(dump->result, mutex.owner))
		return;
	thread->lock = LOCK_WAITED;
	thread->lock_name = "a mutex";
	thread->lock_address = address;
	thread->holder = mutex.owner;
}

/* Returns the thread on whose stack @at is; 0: none. Memory beyond a stack's outermost frame may
 * belong to another stack, so the nearest stack whose innermost frame is at or below @at is used.
 */
static uint32_t on_whose_stack(const struct dump_process *process, uint64_t at)
{
	const struct dump_thread *best = NULL;

	for (size_t i = 0; i < process->n_threads; i++) {
		const struct dump_thread *thread = &process->threads[i];

		if (thread->stack_start && at >= thread->stack_start && at < thread->stack_end &&
		    (!best || thread->stack_start > best->stack_start))
			best = thread;
	}
	return best ? best->tid : 0;
}

uint32_t dump__by_own_id(const struct dump *dump, uint32_t tid)
{
	const struct dump_process *process = dump->result;

	for (size_t i = 0; i < process->n_threads; i++) {
		uint32_t seen = process->threads[i].tid;

		if ((dump->own_ids ? seen : procfs__namespace_tid(process->info.pid, seen)) == tid)
			return seen;
	}
	return 0;
}

static uint32_t by_fs_base(const struct dump_process *process, uint64_t fs_base)
{
	for (size_t i = 0; i < process->n_threads; i++)
		if (process->threads[i].fs_base == fs_base)
			return process->threads[i].tid;
	return 0;
}

static uint32_t find_holder(const struct dump *dump, const struct dump_process *process,
			    const struct runtime_holder *holder)
{
	return holder->tid	  ? dump__by_own_id(dump, holder->tid)
	       : holder->fs_base  ? by_fs_base(process, holder->fs_base)
	       : holder->on_stack ? on_whose_stack(process, holder->on_stack)
				  : 0;
}

/* Returns the query to the runtime: the data of the thread that is still missing. */
static struct runtime_waiter waiter_of(const struct dump_thread *thread,
				       const struct runtime *runtime)
{
	struct runtime_waiter waiter = { .fs_base = thread->fs_base };

	if (thread->lock != LOCK_WAITED)
		waiter.futex = thread->call == SYSCALL_FUTEX ? thread->args[0] : 0;
	else if (runtime->walker && thread->lock_name == runtime->walker->lock && !thread->holder)
		waiter.lock = thread->lock_address;
	return waiter;
}

/* Returns true if the thread waits at the same place as when it was read. It may have run since. */
static bool waits_there(const struct dump *dump, const struct dump_thread *thread,
			struct thread_now *ret)
{
	const struct thread_now *look = &thread->look;

	if (dump->result->is_core)
		return true;
	return look->tid && thread__read(dump->process->pid, thread->tid, ret) && ret->off_cpu &&
	       ret->state != 'R' && ret->call == look->call && ret->sp == look->sp &&
	       ret->pc == look->pc && ret->args[0] == look->args[0];
}

/* Returns true if the thread has not run since @before. */
static bool waited_on(const struct dump *dump, const struct thread_now *before)
{
	struct thread_now after;

	return dump->result->is_core || (thread__read(dump->process->pid, before->tid, &after) &&
					 thread__has_not_run(before, &after));
}

static int ask_runtime(const struct dump *dump, int r, struct dump_process *process)
{
	const struct runtime *runtime = dump->opts.runtimes[r];
	struct runtime_waiter *waiters = calloc(process->n_threads + 1, sizeof(*waiters));
	struct thread_now *before = calloc(process->n_threads + 1, sizeof(*before));
	bool any = false;
	int code = 0;

	if (!waiters || !before) {
		code = -ENOMEM;
		goto out;
	}
	for (size_t i = 0; i < process->n_threads; i++) {
		waiters[i] = waiter_of(&process->threads[i], runtime);
		if ((waiters[i].futex || waiters[i].lock) &&
		    !waits_there(dump, &process->threads[i], &before[i]))
			waiters[i] = (struct runtime_waiter) {};
		any |= waiters[i].futex || waiters[i].lock;
	}
	if (any)
		runtime->inspect->lock_holders(dump->sessions[r], dump->process->pid, waiters,
					       process->n_threads);
	for (size_t i = 0; i < process->n_threads; i++) {
		struct dump_thread *thread = &process->threads[i];

		if (!waiters[i].what || !waited_on(dump, &before[i]))
			continue;
		thread->lock = LOCK_WAITED;
		thread->lock_name = waiters[i].what;
		thread->lock_address = waiters[i].address;
		thread->holder = find_holder(dump, process, &waiters[i].holder);
	}
out:
	free(before);
	free(waiters);
	return code;
}

int dump__find_holders(const struct dump *dump, struct dump_process *process)
{
	const struct runtime *const *runtimes = dump->opts.runtimes;
	int code = 0;

	for (int r = 0; !code && runtimes[r]; r++)
		if (runtime__has(runtimes[r], inspect, lock_holders) && dump->sessions[r])
			code = ask_runtime(dump, r, process);
	return code;
}

void dump__find_names(const struct dump *dump, struct dump_process *process)
{
	const struct runtime *const *runtimes = dump->opts.runtimes;
	char name[DUMP_NAME_BYTES], kernel[DUMP_NAME_BYTES];

	for (size_t i = 0; i < process->n_threads; i++) {
		struct dump_thread *thread = &process->threads[i];

		memcpy(kernel, thread->name, sizeof(kernel));

		for (int r = 0; runtimes[r]; r++)
			if (runtime__has(runtimes[r], names, thread_name) && dump->sessions[r] &&
			    !runtimes[r]->names->thread_name(dump->sessions[r], dump->process->pid,
							     thread->tid, kernel, name,
							     sizeof(name)) &&
			    name[0])
				memcpy(thread->name, name, sizeof(name));
	}
}
