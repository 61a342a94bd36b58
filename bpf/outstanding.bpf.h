/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_OUTSTANDING_BPF_H
#define BRAID_OUTSTANDING_BPF_H

#include "bpf/scratch.bpf.h"

#include "bpf/alloc.h"
#include "bpf/outstanding.h"

/* Allocations that are not freed. The sample of an allocating call (bpf/alloc.bpf.c) waits for its
 * value. At the return of the call its address is noted. The program that sees the address freed
 * reports that the sample is not needed. The addresses noted at the end are outstanding, and user
 * space gives their samples their value. */

/* The outermost current call. Its inner calls are not sampled, and their result is its result. */
struct live_alloc_call {
	__u64 sp, pc; /* at its entry; 0: no call */
	__u64 caller; /* its return address, at sp until it returns */
	__u64 out;    /* place where it writes the address; 0: it returns the address */
	__u64 bytes;  /* requested size */
	struct live_alloc_key moved; /* allocation that it frees if it succeeds ... */
	struct live_alloc_rec old;   /* ... and the sample of that; link 0: none */
	struct live_alloc_rec new;   /* its own sample; link 0: none */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct live_alloc_call);
} live_alloc_calls __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* user space: LIVE_ALLOCS_MAX where it is used */
	__type(key, struct live_alloc_key);
	__type(value, struct live_alloc_rec);
} live_allocs __weak SEC(".maps");

extern __u64 sample_until_ns;
extern __u32 allocs_over;
extern const volatile __u32 cfg_outstanding;
extern __u64 last_live_alloc;

/* Sets the key for @address. Returns 0 if the task does not belong to a target. */
static __always_inline int live_alloc__key(struct live_alloc_key *key, __u64 address)
{
	__u32 tgid = task__pid(bpf_get_current_task_btf());
	const struct proc_rec *proc = tgid ? bpf_map_lookup_elem(&targets, &tgid) : NULL;

	if (!proc)
		return 0;
	*key = (struct live_alloc_key) { .tgid = tgid,
					 .program = proc->program,
					 .address = address };
	return 1;
}

/* Removes the note: the caller of this function owns the address. An allocation that is freed after
 * the end of the recording was outstanding at the end. */
static __always_inline int live_alloc__take(const struct live_alloc_key *key,
					    struct live_alloc_rec *ret)
{
	const struct live_alloc_rec *rec = bpf_map_lookup_elem(&live_allocs, key);

	if (!rec || allocs_over || (sample_until_ns && bpf_ktime_get_ns() >= sample_until_ns))
		return 0;
	*ret = *rec;
	return !bpf_map_delete_elem(&live_allocs, key);
}

static __always_inline void live_alloc__drop(__u64 link)
{
	struct rec_value rec = { .type = REC_VALUE, .link = link };

	if (bpf_ringbuf_output(&ring, &rec, sizeof(rec), ring__flags()))
		count(COUNT_RING_FULL);
}

static __always_inline void live_alloc__add(const struct live_alloc_key *key,
					    const struct live_alloc_rec *rec)
{
	if (!bpf_map_update_elem(&live_allocs, key, rec, BPF_ANY))
		return;
	count(COUNT_LIVE_ALLOCS_FULL);
	live_alloc__drop(rec->link);
}

/* Handles that @address is freed. */
static __always_inline void live_alloc__freed(__u64 address)
{
	struct live_alloc_rec rec;
	struct live_alloc_key key;

	if (live_alloc__key(&key, address) && live_alloc__take(&key, &rec))
		live_alloc__drop(rec.link);
}

/* Drops the note of an earlier allocation at the address, whose free was not seen. */
static __always_inline void live_alloc__replace(const struct live_alloc_key *key)
{
	struct live_alloc_rec old;

	if (!live_alloc__take(key, &old))
		return;
	count(COUNT_LIVE_ALLOC_REUSED);
	live_alloc__drop(old.link);
}

/* Returns the note of a new sample, whose value is pending from now on. */
static __always_inline struct live_alloc_rec live_alloc__begin(struct rec_sample *sample)
{
	sample->flags |= SAMPLE_PENDING;
	sample->link = __sync_fetch_and_add(&last_live_alloc, 1) + 1;
	return (struct live_alloc_rec) { sample->link, sample->time_ns };
}

/* Returns 1 if this call is an inner call of the current one. The current call has not returned,
 * except by an exception: its return would have been seen. A tail call has no return address of its
 * own. */
static __always_inline int live_alloc__is_inner(const struct pt_regs *ctx)
{
	const struct live_alloc_call *call =
		bpf_task_storage_get(&live_alloc_calls, bpf_get_current_task_btf(), 0, 0);

	__u64 caller;

	return call && call->sp && ctx->rsp <= call->sp &&
	       call->sp - ctx->rsp <= ALLOC_STACK_BYTES &&
	       (ctx->rsp < call->sp || ctx->rip != call->pc) &&
	       !bpf_probe_read_user(&caller, sizeof(caller), (void *)call->sp) &&
	       caller == call->caller;
}

/* Records the start of a call that is not an inner call. */
static __always_inline void live_alloc__enter(const struct pt_regs *ctx, __u64 cookie, __u64 bytes,
					      const volatile __u64 *arguments)
{
	struct live_alloc_call *call = bpf_task_storage_get(
		&live_alloc_calls, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!call) {
		count(COUNT_ALLOC_THREAD);
		return;
	}
	call->sp = ctx->rsp;
	call->pc = ctx->rip;
	call->caller = 0;
	bpf_probe_read_user(&call->caller, sizeof(call->caller), (void *)ctx->rsp);
	call->out = ALLOC_WRITES(cookie) ? ctx->rdi : 0;
	call->bytes = bytes;
	call->old.link = call->new.link = 0;
	/* The old note is removed now, although the call may fail: after its return another thread
	 * may have the address. */
	if (ALLOC_FREES(cookie) && arguments[ALLOC_FREED(cookie)] &&
	    live_alloc__key(&call->moved, arguments[ALLOC_FREED(cookie)]) &&
	    !live_alloc__take(&call->moved, &call->old))
		call->old.link = 0;
}

/* Records that the current call is sampled. */
static __always_inline void live_alloc__sampled(struct rec_sample *sample)
{
	struct live_alloc_call *call =
		bpf_task_storage_get(&live_alloc_calls, bpf_get_current_task_btf(), 0, 0);
	const struct live_alloc_rec rec = live_alloc__begin(sample);

	if (call)
		call->new = rec;
}

#endif
