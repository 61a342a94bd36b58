// SPDX-License-Identifier: GPL-2.0
#include "bpf/lock_calls.h"
#include "bpf/futex.h"
#include "bpf/interval.bpf.h"
#include "bpf/lock.bpf.h"
#include "bpf/lock_thread.bpf.h"

/* Calls that take a lock of the C library, by probes at their beginning and at their return. A call
 * counts as a wait if another thread held the lock when it began, or if the thread slept in it.
 * Such a call is sampled when it returns, with its caller as the innermost frame. All other calls
 * only cost the probes. */

/* In musl, one of these functions may call another. Both calls are the same wait if their stack
 * pointers are less than this many bytes apart. */
#define INNER_BYTES 512

/* The words with the state of a lock: those of glibc's mutex and of its struct
 * __pthread_rwlock_arch_t (sysdeps/nptl/bits/struct_rwlock.h, since 2.25). For musl, those of
 * _m_type, _m_lock and _rw_lock (src/internal/pthread_impl.h). */
struct lock_words {
	__u32 word[7];
};

#define GLIBC_WRITE_PHASE   1 /* bit of __readers: readers wait */
#define GLIBC_WRITE_LOCKED  2
#define GLIBC_READERS(word) ((word) >> 3)
#define GLIBC_OWNER	    2 /* index of the word */
#define GLIBC_CUR_WRITER    6
#define MUSL_LOCK	    1
#define MUSL_TYPES	    15
#define MUSL_WAITERS	    0x80000000U
#define MUSL_WRITTEN	    0x7fffffffU

/* Returns the thread's id in its process's namespace, or 0. */
static __always_inline __u32 own_tid(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const void *numbers = (void *)task->thread_pid + bpf_core_field_offset(struct pid, numbers);
	struct upid upid = {};

	if (!task->thread_pid)
		return 0;
	bpf_probe_read_kernel(&upid, sizeof(upid),
			      numbers + task->thread_pid->level * sizeof(upid));
	return upid.nr;
}

static __always_inline void look_at_glibc(struct lock_call_rec *rec, const struct lock_words *lock,
					  __u32 call)
{
	__u32 readers = lock->word[0];

	switch (call) {
	case LOCK_CALL_READ:
		rec->taken = readers & GLIBC_WRITE_PHASE && readers & GLIBC_WRITE_LOCKED;
		rec->owner = rec->taken ? lock->word[GLIBC_CUR_WRITER] : 0;
		break;
	case LOCK_CALL_WRITE:
		rec->taken = readers & GLIBC_WRITE_LOCKED || GLIBC_READERS(readers);
		rec->owner = readers & GLIBC_WRITE_LOCKED ? lock->word[GLIBC_CUR_WRITER] : 0;
		break;
	default:
		rec->taken = lock->word[0] != 0;
		rec->owner = lock->word[GLIBC_OWNER];
	}
}

static __always_inline void look_at_musl(struct lock_call_rec *rec, const struct lock_words *lock,
					 __u32 call)
{
	__u32 value = lock->word[MUSL_LOCK];

	if (call == LOCK_CALL_READ || call == LOCK_CALL_WRITE)
		value = lock->word[0];
	value &= ~MUSL_WAITERS;
	rec->owner = 0;
	switch (call) {
	case LOCK_CALL_READ:
		rec->taken = value == MUSL_WRITTEN;
		break;
	case LOCK_CALL_WRITE:
		rec->taken = value != 0;
		break;
	default: /* a normal mutex does not record its owner */
		rec->taken = value != 0;
		rec->owner = lock->word[0] & MUSL_TYPES ? value & FUTEX_TIDS : 0;
	}
}

static __always_inline struct lock_call_rec *lock_call__make(void)
{
	struct lock_call_rec *rec = bpf_task_storage_get(&lock_calls, bpf_get_current_task_btf(), 0,
							 BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!rec)
		count(COUNT_WAITING_FULL);
	return rec;
}

SEC("?uprobe")
int lock_on_call(struct pt_regs *ctx)
{
	__u32 cookie = bpf_get_attach_cookie(ctx), call = cookie & LOCK_CALL_MASK;
	struct lock_call_rec *rec = is_target() ? lock_call__make() : NULL;
	__u64 address = ctx->rdi, sp = ctx->rsp;
	struct lock_words lock = {};

	if (!rec || (rec->since_ns && rec->address == address && rec->sp > sp &&
		     rec->sp - sp < INNER_BYTES))
		return 0;
	rec->since_ns = 0;
	/* Near the end of a page, only the smaller struct may be readable. */
	if (bpf_probe_read_user(&lock, sizeof(lock), (void *)address))
		bpf_probe_read_user(&lock, sizeof(struct glibc_mutex), (void *)address);
	if (cookie & LOCK_CALL_MUSL)
		look_at_musl(rec, &lock, call);
	else
		look_at_glibc(rec, &lock, call);
	if (rec->owner >= TIDS_MAX)
		rec->owner = 0;
	if (rec->owner && rec->owner == own_tid()) /* a recursive mutex */
		rec->owner = rec->taken = 0;
	if (!numbers_are_ours())
		rec->owner = 0;
	rec->address = address;
	rec->sp = sp;
	rec->sleeps = BPF_CORE_READ(bpf_get_current_task_btf(), nvcsw);
	rec->since_ns = bpf_ktime_get_ns();
	return 0;
}

/* Returns the link to the sample of lock-holder for this wait, or 0. That sample is of the thread
 * that ended the wait. */
static __always_inline __u64 lock_call__link(__u64 since_ns)
{
	const struct lock_thread *thread;

	if (!cfg_numbers[EVENT_LOCK_HOLDER])
		return 0;
	thread = bpf_task_storage_get(&lock_threads, bpf_get_current_task_btf(), 0, 0);
	return thread && thread->last_ns >= since_ns ? thread->rec.link : 0;
}

/* Runs at a `ret`, or after it at the return address. */
SEC("?uprobe")
int lock_on_return(struct pt_regs *ctx)
{
	struct lock_call_rec *rec =
		bpf_task_storage_get(&lock_calls, bpf_get_current_task_btf(), 0, 0);
	__u64 now_ns = interval__now(), since_ns;
	__u32 event = cfg_numbers[EVENT_LOCK_CALL];
	struct scratch *scratch;
	struct worth worth;

	if (!rec || !rec->since_ns || (ctx->rsp != rec->sp && ctx->rsp != rec->sp + 8))
		return 0;
	since_ns = __sync_lock_test_and_set(&rec->since_ns, 0);
	if (since_ns && since_ns < sample_from_ns)
		since_ns = sample_from_ns;
	if (!since_ns || since_ns >= now_ns || now_ns - since_ns < cfg_minima[EVENT_AT(event)] ||
	    (!rec->taken && rec->sleeps == BPF_CORE_READ(bpf_get_current_task_btf(), nvcsw)))
		return 0;
	scratch = budget__choose(event, &rec->clock, now_ns - since_ns, now_ns, &worth)
			  ? sample__begin_of(event, now_ns, &worth)
			  : NULL;
	if (!scratch)
		return 0;
	scratch->sample.object = rec->address;
	scratch->sample.peer = rec->owner;
	scratch->sample.link = lock_call__link(since_ns);
	scratch->sample.condition.state = STATE_BLOCKED;
	if (ctx->rsp == rec->sp)
		sample__unwind_from_caller(ctx, scratch);
	else
		sample__unwind_from(ctx, scratch);
	return 0;
}
