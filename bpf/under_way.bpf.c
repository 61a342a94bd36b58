// SPDX-License-Identifier: GPL-2.0
#include "bpf/under_way.h"
#include "bpf/interval.bpf.h"
#include "bpf/lock_thread.bpf.h"

/* System calls and waits for locks that are in progress when the recording ends. A call in progress
 * has a start time, and the half that resets this time samples the call, so that it is sampled
 * once. That is either the program at the end of the call, or user space. User space iterates
 * twice: it first reads the start times, and then resets them. If a start time is unchanged at the
 * second iteration, the call has not ended in between. */

__u64 calls_taken = 0; /* 1: user space resets the start times */

/* Returns the start of the call, or 0 if there is none. For a thread without an event so far, that
 * is the start of the recording. */
static __always_inline __u64 call__since(__u64 *since_ns, __u64 *seen)
{
	__u64 ns, was;

	if (!calls_taken)
		return *since_ns ?: *seen ? 0 : sample_from_ns;
	ns = __sync_lock_test_and_set(since_ns, 0);
	was = __sync_lock_test_and_set(seen, 1);
	return ns ?: was ? 0 : sample_from_ns;
}

static __always_inline void put_syscall(struct task_struct *task, struct call_rec *ret)
{
	struct task_times *times =
		bpf_task_storage_get(&task_times, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!times)
		return;
	ret->syscall = times->seen ? times->syscall : CALL_UNKNOWN;
	ret->syscall_ns = call__since(&times->syscall_ns, &times->seen);
}

static __always_inline void put_lock(struct task_struct *task, struct call_rec *ret)
{
	struct lock_thread *thread =
		bpf_task_storage_get(&lock_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!thread)
		return;
	ret->link = thread->rec.link;
	ret->peer = thread->rec.peer;
	ret->lock_ns = call__since(&thread->rec.off_ns, &thread->seen);
}

/* Stores the call for a lock. A call that began before its probes were attached is not visible. */
static __always_inline void put_call(struct task_struct *task, struct call_rec *ret)
{
	struct lock_call_rec *call = bpf_task_storage_get(&lock_calls, task, 0, 0);

	if (!call)
		return;
	ret->address = call->address;
	ret->call_peer = call->owner;
	ret->call_ns = calls_taken ? __sync_lock_test_and_set(&call->since_ns, 0) : call->since_ns;
}

SEC("?iter/task")
int list_calls(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct call_rec rec = {};
	__u32 tgid;

	if (!task || task->flags & PF_KERNEL_CREATED)
		return 0;
	tgid = task__pid(task);
	if (!target__is_any(task, tgid))
		return 0;
	rec.tid = task__tid(task);
	if (cfg_numbers[EVENT_SYSCALL])
		put_syscall(task, &rec);
	if (cfg_numbers[EVENT_LOCK])
		put_lock(task, &rec);
	if (cfg_numbers[EVENT_LOCK_CALL])
		put_call(task, &rec);
	if (rec.syscall_ns || rec.lock_ns || rec.call_ns)
		bpf_seq_write(ctx->meta->seq, &rec, sizeof(rec));
	return 0;
}
