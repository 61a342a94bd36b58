// SPDX-License-Identifier: GPL-2.0
#include "bpf/futex.h"
#include "bpf/interval.bpf.h"
#include "bpf/lock_calls.h"

/* The order in which threads take mutexes, by probes at the functions of the C library. A thread
 * that is about to wait for a mutex while it holds others is sampled if this order is new. So a
 * possible deadlock is seen whether or not it happens. The sample's first words are the mutexes. */

struct lock_order_thread {
	__u64 held[LOCKS_HELD_MAX]; /* nodes, the newest first */
	__u64 tried;		    /* address of the mutex of a call that may fail; 0: none */
	__u64 tried_sp;		    /* address of that call's return address */
	__u64 last, last_sp;	    /* mutex and stack pointer of the last call that waits */
	__u32 depths[LOCKS_HELD_MAX];
	__u32 n;
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct lock_order_thread);
} lock_order_threads SEC(".maps");

/* Sampled orders. If an order is evicted, it is sampled once more. */
struct lock_edge {
	__u64 from, to; /* nodes */
	__u32 tgid, tid;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* user space: LOCK_EDGES_MAX */
	__type(key, struct lock_edge);
	__type(value, __u32);
} lock_edges SEC(".maps");

/* The value is the current LOCK_NODE_LIFE of an address that has had more than one mutex. */
struct lock_place {
	__u64 address;
	__u32 tgid;
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* user space: LOCK_LIVES_MAX */
	__type(key, struct lock_place);
	__type(value, __u32);
} lock_lives SEC(".maps");

static __u64 last_life = 0;

#define HELD_AT(i)	((i) & (LOCKS_HELD_MAX - 1))
#define INNER_BYTES	512
#define OWNER_DIED	130 /* EOWNERDEAD: the mutex is taken nevertheless */
#define KINDS		3   /* mask for glibc's __kind and musl's _m_type */
#define RECURSIVE	1
#define KIND_AT(cookie) ((cookie)&LOCK_CALL_MUSL ? 0 : 16)

static __always_inline __u64 node_of(__u64 address, __u32 tgid)
{
	const struct lock_place place = { .address = address, .tgid = tgid };
	__u32 *life = bpf_map_lookup_elem(&lock_lives, &place);

	return LOCK_NODE(address, life ? *life : 0);
}

/* Returns the index of the mutex among those held, or LOCKS_HELD_MAX. */
static __always_inline __u32 find_held(const struct lock_order_thread *thread, __u64 address)
{
	__u32 i;

	for (i = 0; i < LOCKS_HELD_MAX; i++)
		if (i < thread->n && LOCK_NODE_ADDRESS(thread->held[i]) == address)
			break;
	return i;
}

static __always_inline void hold(struct lock_order_thread *thread, __u64 node, __u64 cookie)
{
	__u64 address = LOCK_NODE_ADDRESS(node);
	__u32 i = find_held(thread, address), kind = 0;

	if (i < LOCKS_HELD_MAX) { /* again: a recursive mutex, or a call that fails */
		bpf_probe_read_user(&kind, sizeof(kind), (void *)address + KIND_AT(cookie));
		if ((kind & KINDS) == RECURSIVE)
			thread->depths[HELD_AT(i)]++;
		return;
	}
	if (thread->n >= LOCKS_HELD_MAX) {
		count(COUNT_LOCKS_HELD);
		return;
	}
	for (i = LOCKS_HELD_MAX - 1; i > 0; i--) {
		thread->held[i] = thread->held[i - 1];
		thread->depths[i] = thread->depths[i - 1];
	}
	thread->held[0] = node;
	thread->depths[0] = 1;
	thread->n++;
}

static __always_inline void release(struct lock_order_thread *thread, __u64 address)
{
	__u32 i = find_held(thread, address);

	if (thread->last == address)
		thread->last = 0;
	if (i >= LOCKS_HELD_MAX || --thread->depths[HELD_AT(i)])
		return;
	for (i = HELD_AT(i); i < LOCKS_HELD_MAX - 1; i++) {
		thread->held[i] = thread->held[HELD_AT(i + 1)];
		thread->depths[i] = thread->depths[HELD_AT(i + 1)];
	}
	thread->n--;
}

static __always_inline void forget(__u64 address, __u32 tgid)
{
	const struct lock_place place = { .address = address, .tgid = tgid };
	__u32 life = __sync_fetch_and_add(&last_life, 1) % 0xffff + 1;

	bpf_map_update_elem(&lock_lives, &place, &life, BPF_ANY);
}

/* Returns 1 if the order from any held mutex to @node is new. With @seen, also records these orders
 * as seen. */
static __always_inline int has_new(const struct lock_order_thread *thread, __u64 node, __u32 tgid,
				   int seen)
{
	struct lock_edge edge = { .to = node,
				  .tgid = tgid,
				  .tid = task__tid(bpf_get_current_task_btf()) };
	__u32 i, one = 1;
	int any = 0;

	for (i = 0; i < LOCKS_HELD_MAX; i++) {
		if (i >= thread->n)
			break;
		edge.from = thread->held[i];
		if (edge.from == node || bpf_map_lookup_elem(&lock_edges, &edge))
			continue;
		any = 1;
		if (seen)
			bpf_map_update_elem(&lock_edges, &edge, &one, BPF_ANY);
	}
	return any;
}

/* Begins the sample of the thread that is about to take the mutex. Returns NULL if its orders are
 * not new, or if no sample can begin. */
static __always_inline struct scratch *order__begin(const struct lock_order_thread *thread,
						    __u64 node, __u32 tgid)
{
	const struct worth worth = { 1, 1, 1 };
	struct scratch *scratch;
	__u32 i;

	if (!thread->n || !has_new(thread, node, tgid, 0))
		return NULL;
	scratch = sample__begin_of(cfg_numbers[EVENT_LOCK_ORDER], bpf_ktime_get_ns(), &worth);
	if (!scratch)
		return NULL;
	has_new(thread, node, tgid, 1);
	scratch->words[0] = node;
	for (i = 0; i < LOCKS_HELD_MAX; i++)
		scratch->words[1 + i] = thread->held[i];
	scratch->n_words = scratch->sample.n_kernel = 1 + HELD_AT(thread->n - 1) + 1;
	scratch->sample.object = LOCK_NODE_ADDRESS(node);
	return scratch;
}

static __always_inline struct lock_order_thread *order__thread(int make)
{
	struct lock_order_thread *thread =
		bpf_task_storage_get(&lock_order_threads, bpf_get_current_task_btf(), 0,
				     make ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);

	if (!thread && make)
		count(COUNT_WAITING_FULL);
	return thread;
}

SEC("?uprobe")
int lock_order_on_call(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx), address = ctx->rdi, node;
	__u32 tgid = task__pid(bpf_get_current_task_btf()), call = cookie & LOCK_CALL_MASK;
	struct lock_order_thread *thread;
	struct scratch *scratch;

	if (!is_target())
		return 0;
	if (call == LOCK_CALL_FORGET) {
		forget(LOCK_NODE_ADDRESS(address), tgid);
		return 0;
	}
	thread = order__thread(call != LOCK_CALL_UNLOCK);
	if (!thread)
		return 0;
	if (call == LOCK_CALL_CONDITION)
		address = ctx->rsi;
	address = LOCK_NODE_ADDRESS(address);
	if (call == LOCK_CALL_UNLOCK) {
		release(thread, address);
		return 0;
	}
	if (call == LOCK_CALL_MUTEX_TRY) {
		/* In musl, a function that waits ends in a call of the one that may fail. */
		if (!(cookie & LOCK_CALL_MUSL && thread->last == address &&
		      thread->last_sp - ctx->rsp < INNER_BYTES)) {
			thread->tried = address;
			thread->tried_sp = ctx->rsp;
		}
		return 0;
	}
	node = node_of(address, tgid);
	/* A mutex that the thread already holds (a recursive one, a condition's) is no new wait.
	 * But mutexes taken after a condition's are held while that is taken again. */
	scratch = call == LOCK_CALL_MUTEX && find_held(thread, address) < LOCKS_HELD_MAX
			  ? NULL
			  : order__begin(thread, node, tgid);
	if (call == LOCK_CALL_MUTEX) {
		thread->last = address;
		thread->last_sp = ctx->rsp;
		hold(thread, node, cookie);
	}
	if (!scratch)
		return 0;
	sample__unwind_from(ctx, scratch);
	return 0;
}

SEC("?uprobe")
int lock_order_on_return(struct pt_regs *ctx)
{
	struct lock_order_thread *thread = order__thread(0);
	__u64 cookie = bpf_get_attach_cookie(ctx), tried;
	__u32 result = ctx->rax;

	/* at a `ret`, or after it at the return address */
	if (!thread || !thread->tried ||
	    (ctx->rsp != thread->tried_sp && ctx->rsp != thread->tried_sp + 8))
		return 0;
	tried = thread->tried;
	thread->tried = 0;
	if (!result || result == OWNER_DIED)
		hold(thread, node_of(tried, task__pid(bpf_get_current_task_btf())), cookie);
	return 0;
}
