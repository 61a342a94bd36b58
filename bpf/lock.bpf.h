/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_LOCK_BPF_H
#define BRAID_LOCK_BPF_H

#include "bpf/thread_local.bpf.h"

/* The state of the thread regarding the lock of its interpreter (CPython's GIL, CRuby's GVL). The
 * walker of the runtime reads it from the runtime's structs. Failed reads leave LOCK_UNKNOWN, and
 * have no other effect. */

extern const volatile __u32 cfg_locks; /* 0: walkers do not read it */

/* Returns 1 if the thread waits for a futex in this range. */
static __always_inline int waits_in(const struct rec_sample *sample, __u64 start, __u64 bytes)
{
	return sample->condition.syscall == SYSCALL_FUTEX && sample->object - start < bytes;
}

/* Returns 1 if the thread waits for musl's condition variable at @cond. A waiter sleeps on a word
 * of its own stack, in a struct waiter {prev, next, state, barrier}. This struct is linked to those
 * of earlier and later waiters. The newest waiter is the variable's _c_head, the oldest its _c_tail
 * (src/thread/pthread_cond_timedwait.c, from 1.1.7 on). The search goes towards the head. */
#define MUSL_COND_HEAD	    8
#define MUSL_WAITER_BARRIER 20
#define MUSL_WAITERS_MAX    32

static __always_inline int waits_by_musl_cond(const struct rec_sample *sample, __u64 cond)
{
	__u64 head, at = sample->object - MUSL_WAITER_BARRIER;
	__u32 i;

	if (sample->condition.syscall != SYSCALL_FUTEX ||
	    read_user(&head, sizeof(head), cond + MUSL_COND_HEAD) || !head)
		return 0;
	for (i = 0; i < MUSL_WAITERS_MAX && at != head; i++)
		if (read_user(&at, sizeof(at), at) || !at)
			return 0;
	return at == head;
}

/* Sets the lock state of the sample. LOCK_WAITED takes precedence: a thread with several
 * interpreters may hold the lock of one while it waits for that of another. */
static __always_inline void sample__lock(struct rec_sample *sample, enum lock_state lock)
{
	__u8 before = sample->condition.lock;

	if (lock == LOCK_WAITED || before == LOCK_UNKNOWN ||
	    (lock == LOCK_HELD && before == LOCK_FREE))
		sample->condition.lock = lock;
}

/* Returns 1 if the task's own PID namespace is that of braid. Otherwise the target has other ids
 * for its threads. */
static __always_inline int numbers_are_ours(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const void *numbers = (void *)task->thread_pid + bpf_core_field_offset(struct pid, numbers);
	struct upid upid;

	if (!task->thread_pid)
		return 0;
	if (!cfg_pidns_ino)
		return !task->thread_pid->level;
	return !bpf_probe_read_kernel(&upid, sizeof(upid),
				      numbers + task->thread_pid->level * sizeof(upid)) &&
	       BPF_CORE_READ(upid.ns, ns.inum) == cfg_pidns_ino;
}

/* Records the owner of the lock that the thread waits for. @tid_at: address of the owner's id in
 * its own PID namespace. */
static __always_inline void sample__waits_for(struct rec_sample *sample, __u64 tid_at)
{
	__u32 tid;

	if (!sample->peer && tid_at && numbers_are_ours() && !read_user(&tid, sizeof(tid), tid_at))
		sample->peer = tid;
}

#endif
