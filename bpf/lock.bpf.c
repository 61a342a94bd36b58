// SPDX-License-Identifier: GPL-2.0
#include "bpf/futex.h"
#include "bpf/interval.bpf.h"
#include "bpf/lock_thread.bpf.h"

/* Contended locks of user space: threads that wait for a futex, the duration, and the threads that
 * wake them. A lock without waiters makes no system call, and costs nothing.
 *
 * The program records a wait at the start of the system call, and samples it at the end. In between
 * the thread runs no user code, so its registers are still those of the call. bpf/under_way.bpf.c
 * lists the threads that still wait at the end of the recording (a deadlock never ends). */

/* The registers of the system call that describe the wait: all registers would not fit on the
 * stack. */
struct futex_call {
	__u64 rdx, rsi, rdi;
	__u64 orig_rax, rip, cs; /* in this order in struct pt_regs */
};
_Static_assert(__builtin_offsetof(struct pt_regs, cs) ==
		       __builtin_offsetof(struct pt_regs, rdx) + 40,
	       "contiguous");

struct lock_key {
	__u64 address;
	__u32 tgid;
	__u32 pad;
};

/* The first waiters at an address: thread, start, and link of its sample. 0: free. */
#define LOCK_WAITERS 8
struct lock_waiters {
	struct {
		__u64 link, since_ns;
		__u32 tid, pad;
	} list[LOCK_WAITERS];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* user space: WAITING_MAX */
	__type(key, struct lock_key);
	__type(value, struct lock_waiters);
} lock_waiters __weak SEC(".maps");

static __u64 last_lock_link = 0;
static const volatile struct lock_waiters nobody = {};

static __always_inline struct lock_waiters *lock__at(__u64 address, __u32 tgid, int make)
{
	const struct lock_key key = { .address = address, .tgid = tgid };
	struct lock_waiters *waiters = bpf_map_lookup_elem(&lock_waiters, &key);

	if (waiters || !make)
		return waiters;
	bpf_map_update_elem(&lock_waiters, &key, (void *)&nobody, BPF_NOEXIST);
	return bpf_map_lookup_elem(&lock_waiters, &key);
}

/* Returns the thread that has the lock; 0: unknown. */
static __always_inline __u32 lock__owner(const struct futex_call *regs, __u32 command)
{
	struct glibc_mutex mutex = {};

	if (bpf_probe_read_user(&mutex, sizeof(mutex), (void *)regs->rdi))
		return 0;
	return futex__owner(&mutex, command, regs->rdx);
}

/* Returns the data of the current task, or NULL if there is no memory, which is counted. */
static __always_inline struct lock_thread *lock__thread(void)
{
	struct lock_thread *thread = bpf_task_storage_get(&lock_threads, bpf_get_current_task_btf(),
							  0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!thread)
		count(COUNT_WAITING_FULL);
	return thread;
}

static __always_inline void lock__note(const struct futex_call *regs, __u32 command, __u32 tgid)
{
	__u32 tid = task__tid(bpf_get_current_task_btf()), i;
	struct lock_thread *thread = lock__thread();
	struct waiting_rec *rec = thread ? &thread->rec : NULL;
	struct lock_waiters *waiters;

	if (!rec)
		return;
	thread->seen = 1;
	rec->state = STATE_BLOCKED;
	rec->peer = lock__owner(regs, command);
	rec->link = 0;
	rec->off_ns = thread->last_ns = bpf_ktime_get_ns();
	if (!cfg_numbers[EVENT_LOCK_HOLDER])
		return;
	rec->link = __sync_fetch_and_add(&last_lock_link, 1) + 1;
	waiters = lock__at(regs->rdi, tgid, 1);
	for (i = 0; waiters && i < LOCK_WAITERS; i++) {
		if (__sync_val_compare_and_swap(&waiters->list[i].link, 0, rec->link))
			continue;
		waiters->list[i].tid = tid;
		waiters->list[i].since_ns = rec->off_ns;
		return;
	}
	count(COUNT_LOCK_WAITERS);
}

static __always_inline void lock__forget(const struct waiting_rec *rec, __u64 address, __u32 tgid)
{
	struct lock_waiters *waiters = rec->link ? lock__at(address, tgid, 0) : NULL;
	__u32 i;

	for (i = 0; waiters && i < LOCK_WAITERS; i++)
		if (waiters->list[i].link == rec->link) {
			waiters->list[i].since_ns = 0;
			waiters->list[i].link = 0;
		}
}

/* Returns the wait time of the first waiter, which is the value of the waker's sample. Returns 0 if
 * there is no waiter, or its wait has just begun. */
static __always_inline __u64 lock__first(const struct lock_waiters *waiters, __u64 now_ns,
					 __u64 *ret_link, __u32 *ret_tid)
{
	__u64 longest_ns = 0, since_ns;
	__u32 i;

	for (i = 0; i < LOCK_WAITERS; i++) {
		since_ns = waiters->list[i].since_ns;
		if (!waiters->list[i].link || !since_ns || since_ns >= now_ns ||
		    now_ns - since_ns <= longest_ns)
			continue;
		longest_ns = now_ns - since_ns;
		*ret_link = waiters->list[i].link;
		*ret_tid = waiters->list[i].tid;
	}
	return longest_ns;
}

static __always_inline void lock__sample_holder(void *ctx, __u64 address, __u32 tgid)
{
	__u32 event = cfg_numbers[EVENT_LOCK_HOLDER], tid = 0;
	struct lock_waiters *waiters = event ? lock__at(address, tgid, 0) : NULL;
	__u64 now_ns = bpf_ktime_get_ns(), link = 0, value;
	struct scratch *scratch;
	struct worth worth;

	value = waiters ? lock__first(waiters, now_ns, &link, &tid) : 0;
	if (!value || value < cfg_minima[EVENT_AT(event)])
		return;
	worth = (struct worth) { value, 1, value };
	scratch = sample__begin_of(event, now_ns, &worth);
	if (!scratch)
		return;
	scratch->sample.link = link;
	scratch->sample.peer = tid;
	scratch->sample.flags |= SAMPLE_KERNEL_MODE;
	scratch->cs = scratch->has_regs ? read_task_regs(scratch) : 0;
	sample__unwind(ctx, scratch);
}

SEC("?raw_tp")
int lock_on_sys_enter(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 tgid, command;
	struct futex_call regs;

	if (ctx->args[1] != SYSCALL_FUTEX)
		return 0;
	tgid = task__pid(bpf_get_current_task_btf());
	if (!target__is_any(bpf_get_current_task_btf(), tgid) ||
	    bpf_probe_read_kernel(&regs, sizeof(regs), &((struct pt_regs *)ctx->args[0])->rdx) ||
	    arch__is_compat(regs.cs))
		return 0;
	command = regs.rsi & FUTEX_COMMANDS;
	if (command >= 32)
		return 0;
	if (COMMANDS_WAIT & 1U << command)
		lock__note(&regs, command, tgid);
	else if (COMMANDS_WAKE & 1U << command)
		lock__sample_holder(ctx, regs.rdi, tgid);
	return 0;
}

/* Handles a wait whose start was not seen. It was in progress when the recording began if it is the
 * first event of the thread. Otherwise returns NULL. */
static __always_inline struct lock_thread *lock__under_way(const struct pt_regs *from,
							   struct lock_thread *thread)
{
	struct futex_call regs;
	__u32 command;

	if ((thread && thread->seen) || bpf_probe_read_kernel(&regs, sizeof(regs), &from->rdx) ||
	    arch__is_compat(regs.cs) || !is_target())
		return NULL;
	command = regs.rsi & FUTEX_COMMANDS;
	if (command >= 32 || !(COMMANDS_WAIT & 1U << command))
		return NULL;
	if (!thread)
		thread = lock__thread();
	/* User space may already have reported this wait as one that has not ended. */
	return thread && !__sync_lock_test_and_set(&thread->seen, 1) ? thread : NULL;
}

SEC("?raw_tp")
int lock_on_sys_exit(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 number, address, now_ns, since_ns, interval_ns;
	struct pt_regs *regs = (struct pt_regs *)ctx->args[0];
	__u32 event = cfg_numbers[EVENT_LOCK];
	struct lock_thread *thread;
	struct waiting_rec *rec;
	struct scratch *scratch;
	struct worth worth;

	if (bpf_probe_read_kernel(&number, sizeof(number), &regs->orig_rax) ||
	    number != SYSCALL_FUTEX)
		return 0;
	thread = bpf_task_storage_get(&lock_threads, bpf_get_current_task_btf(), 0, 0);
	since_ns = thread ? __sync_lock_test_and_set(&thread->rec.off_ns, 0) : 0;
	if (!since_ns) {
		thread = lock__under_way(regs, thread);
		since_ns = sample_from_ns;
	}
	if (!thread || bpf_probe_read_kernel(&address, sizeof(address), &regs->rdi))
		return 0;
	rec = &thread->rec;
	now_ns = interval__now();
	lock__forget(rec, address, task__pid(bpf_get_current_task_btf()));
	if (since_ns && since_ns < sample_from_ns)
		since_ns = sample_from_ns;
	interval_ns = since_ns && now_ns > since_ns ? now_ns - since_ns : 0;
	if (!event || !interval_ns || interval_ns < cfg_minima[EVENT_AT(event)])
		return 0;
	scratch = budget__choose(event, &rec->clock, interval_ns, now_ns, &worth)
			  ? sample__begin_of(event, now_ns, &worth)
			  : NULL;
	if (!scratch)
		return 0;
	scratch->sample.link = rec->link;
	scratch->sample.peer = rec->peer;
	scratch->sample.condition.state = STATE_BLOCKED;
	scratch->sample.flags |= SAMPLE_KERNEL_MODE;
	scratch->cs = scratch->has_regs ? read_task_regs(scratch) : 0;
	sample__unwind(ctx, scratch);
	return 0;
}
