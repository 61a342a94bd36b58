// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/session/dump_state.h"

#include <linux/futex.h>
#include <string.h>

#include "core/base/util.h"

/* glibc's pthread_mutex_t on x86-64 (sysdeps/x86/nptl/bits/struct_mutex.h): lock, count, owner,
 * nusers, kind. Who waits in pthread_mutex_lock has set the lock to 2 and waits for it to change;
 * no other lock of glibc's has the id of a thread there. */
struct mutex {
	int32_t lock;
	uint32_t count;
	uint32_t owner;
	uint32_t n_users;
	int32_t kind;
};
#define MUTEX_WAITED 2
#define MUTEX_KINDS  0x3ff /* all bits that there are (nptl/pthreadP.h) */

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

/* What lies behind a stack's outermost frame may be another's: the nearest above whose innermost
 * frame the address is. 0: none. */
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

/* `tid`: as the process sees it. 0: none. */
static uint32_t by_own_id(const struct dump *dump, const struct dump_process *process, uint32_t tid)
{
	for (size_t i = 0; i < process->n_threads; i++) {
		uint32_t seen = process->threads[i].tid;

		if ((dump->own_ids ? seen : procfs__namespace_tid(process->info.pid, seen)) == tid)
			return seen;
	}
	return 0;
}

void dump__find_holders(const struct dump *dump, struct dump_process *process)
{
	const struct runtime *const *runtimes = dump->opts.runtimes;
	struct runtime_holder holder;

	for (size_t i = 0; i < process->n_threads; i++) {
		struct dump_thread *thread = &process->threads[i];

		for (int r = 0; thread->lock_address && !thread->holder && runtimes[r]; r++) {
			if (!runtimes[r]->lock_holder || thread->lock_name != runtimes[r]->lock ||
			    !dump->sessions[r])
				continue;
			holder = runtimes[r]->lock_holder(dump->sessions[r], dump->process->pid,
							  thread->lock_address);
			thread->holder = holder.tid ? by_own_id(dump, process, holder.tid)
					 : holder.on_stack
						 ? on_whose_stack(process, holder.on_stack)
						 : 0;
		}
	}
}

void dump__find_names(const struct dump *dump, struct dump_process *process)
{
	const struct runtime *const *runtimes = dump->opts.runtimes;
	char name[DUMP_NAME_BYTES];

	for (size_t i = 0; i < process->n_threads; i++) {
		struct dump_thread *thread = &process->threads[i];

		for (int r = 0; runtimes[r]; r++)
			if (runtimes[r]->thread_name && dump->sessions[r] &&
			    !runtimes[r]->thread_name(dump->sessions[r], dump->process->pid,
						      thread->tid, name, sizeof(name)) &&
			    name[0])
				memcpy(thread->name, name, sizeof(name));
	}
}

static struct dump_thread *holder_of(struct dump_process *process, const struct dump_thread *thread)
{
	return thread->lock == LOCK_WAITED && thread->holder
		       ? (struct dump_thread *)find(process, thread->holder)
		       : NULL;
}

/* Who runs while others are looked at may have got the lock, and given it back, since: so a circle
 * only counts if nobody in it runs. */
static bool waits(const struct dump_thread *thread)
{
	return thread->lock == LOCK_WAITED && thread->state != 'R';
}

void dump__find_deadlocks(struct dump_process *process)
{
	for (size_t i = 0; i < process->n_threads; i++) {
		struct dump_thread *first = &process->threads[i], *at = first;

		first->circle = first->tid;
		for (size_t steps = 0; at && waits(at) && steps < process->n_threads; steps++) {
			at = holder_of(process, at);
			if (at == first) {
				first->deadlocked = true;
				break;
			}
			if (at)
				first->circle = min_of(first->circle, at->tid);
		}
	}
}
