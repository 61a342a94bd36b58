/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_RUBY_GVL_BPF_H
#define BRAID_RUBY_GVL_BPF_H

#include "bpf/lock.bpf.h"
#include "bpf/ruby.h"

/* Records if the thread has its ractor's GVL, or waits for it (thread_pthread.c). The lock
 * points to the thread that has it. Waiting threads are in a list. Each waits for its own
 * condition variable, on which it sleeps for other reasons, too. */

/* Stores the address of the struct that contains lock_cond and lock_tid in *ret_where. */
static __always_inline int read_native(const struct ruby_offsets *offsets, __u64 thread,
				       __u64 *ret_where)
{
	*ret_where = thread;
	return offsets->lock_native
		       ? read_user(ret_where, sizeof(*ret_where), thread + offsets->lock_native)
		       : 0;
}

static __always_inline __u64 runner__tid_at(const struct ruby_proc_rec *proc, __u64 thread)
{
	const struct ruby_offsets *offsets = &proc->offsets;
	__u64 where, pthread;

	if (!offsets->lock_tid || read_native(offsets, thread, &where))
		return 0;
	if (!offsets->lock_tid_is_pthread)
		return where + offsets->lock_tid;
	return !proc->libc.tid || read_user(&pthread, sizeof(pthread), where + offsets->lock_tid)
		       ? 0
		       : pthread + proc->libc.tid;
}

#define LOCK_COND_BYTES 48 /* pthread_cond_t */

/* Returns true if the thread is in the list, and asleep. A node outside of a list points at
 * itself, or is 0 if it was never in one. */
static __always_inline int waits_for_gvl(const struct ruby_proc_rec *proc, __u64 thread,
					 const struct rec_sample *sample)
{
	const struct ruby_offsets *offsets = &proc->offsets;
	__u64 node = thread + offsets->lock_ready, next, where;

	if (read_user(&next, sizeof(next), node) || !next || next == node ||
	    read_native(offsets, thread, &where))
		return 0;
	where += offsets->lock_cond;
	/* thread_pthread.h uses one variable for both purposes with glibc. With other libraries,
	 * the variable for turns follows the one for interrupts. */
	return proc->libc.values ? waits_by_musl_cond(sample, where + LOCK_COND_BYTES)
				 : waits_in(sample, where, LOCK_COND_BYTES);
}

static __always_inline void note_gvl(const struct ruby_proc_rec *proc, __u64 thread,
				     struct rec_sample *sample)
{
	const struct ruby_offsets *offsets = &proc->offsets;
	__u64 owner, running;

	if (!offsets->lock_bytes || read_user(&owner, sizeof(owner), thread + offsets->lock_of) ||
	    read_user(&running, sizeof(running), owner + offsets->lock_running))
		return;
	if (running == thread) {
		sample__lock(sample, LOCK_HELD);
	} else if (sample->condition.syscall == SYSCALL_FUTEX &&
		   (waits_in(sample, owner + offsets->lock_start, offsets->lock_bytes) ||
		    waits_for_gvl(proc, thread, sample))) {
		sample__lock(sample, LOCK_WAITED);
		if (running)
			sample__waits_for(sample, runner__tid_at(proc, running));
	} else {
		sample__lock(sample, LOCK_FREE);
	}
}

#endif
