// SPDX-License-Identifier: GPL-2.0
#include "bpf/sampler.bpf.h"

#include "bpf/alloc_inner.bpf.h"
#include "bpf/alloc_sample.bpf.h"
#include "bpf/outstanding.bpf.h"

/* The event alloc: functions that allocate, and mappings without a file, sampled by bytes
 * (bpf/alloc.h). A call without a sample only counts its thread's bytes down. */

#define SYSCALL_MMAP   9
#define SYSCALL_BRK    12
#define SYSCALL_MREMAP 25

#define MAP_ANONYMOUS 0x20
#define PROT_WRITE    2
#define ERRORS_FIRST  (~0ULL - 4094) /* system calls return errors as -4095 to -1 */

struct alloc_thread {
	__u64 left;	   /* bytes until the next sampled one of calls, */
	__u64 mapped_left; /* and of mappings */
	struct alloc_outer outer;
	struct pt_regs regs; /* registers of a system call; too large for the BPF stack */
	__u64 brk;	     /* value before the thread's current brk(); 0: none */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct alloc_thread);
} alloc_threads __weak SEC(".maps");

static __always_inline __u64 alloc_period(void)
{
	return cfg_values[EVENT_AT(cfg_numbers[EVENT_ALLOC])];
}

/* Returns the thread's state, or NULL. The event is over or the thread belongs to no target then,
 * or memory is short, which is counted. */
static __always_inline struct alloc_thread *alloc_thread(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct alloc_thread *thread;
	__u32 tgid;

	if (allocs_over)
		return NULL;
	thread = bpf_task_storage_get(&alloc_threads, task, 0, 0);
	if (thread)
		return thread;
	tgid = task__pid(task);
	if (!target__is_any(task, tgid))
		return NULL;
	thread = bpf_task_storage_get(&alloc_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread) {
		count(COUNT_ALLOC_THREAD);
		return NULL;
	}
	thread->left = alloc__draw(bpf_get_prandom_u32(), alloc_period());
	thread->mapped_left = alloc__draw(bpf_get_prandom_u32(), alloc_period());
	return thread;
}

/* Returns the bytes that an allocation of @bytes represents; 0: it is not sampled. *ret_left is the
 * number of bytes until the next sampled one. */
static __always_inline __u64 alloc_value(__u64 *ret_left, __u64 bytes)
{
	__u64 period = alloc_period();

	if (bytes - 1 >= ALLOC_BYTES_MAX)
		return 0;
	if (period <= 1)
		return bytes;
	if (bytes < *ret_left) {
		*ret_left -= bytes;
		return 0;
	}
	*ret_left = alloc__draw(bpf_get_prandom_u32(), period);
	return alloc__weight(bytes, period);
}

SEC("?uprobe")
int alloc_on_call(struct pt_regs *ctx)
{
	/* by number of the register; a missing argument counts as 1 */
	volatile __u64 arguments[8] = { ctx->rdi, ctx->rsi, ctx->rdx, ctx->rcx, 1, 1, 1, 1 };
	__u64 cookie = bpf_get_attach_cookie(ctx), bytes, times, value;
	struct alloc_thread *thread = alloc_thread();
	struct scratch *scratch;
	int inner;

	if (!thread)
		return 0;
	bytes = arguments[ALLOC_SIZE(cookie)];
	times = arguments[ALLOC_TIMES(cookie)];
	if (times != 1 && times && bytes > ALLOC_BYTES_MAX / times)
		return 0; /* the call fails */
	bytes *= times;
	inner = cfg_outstanding
			? live_alloc__is_inner(ctx)
			: alloc_outer__allocated(&thread->outer, ctx, cookie, bytes, arguments);
	if (!inner && cfg_outstanding)
		live_alloc__enter(ctx, cookie, bytes, arguments);
	else if (!inner)
		alloc_outer__enter(&thread->outer, ctx, cookie, bytes, arguments);
	value = inner ? 0 : alloc_value(&thread->left, bytes);
	scratch = value ? alloc_begin(bytes, value, bpf_ktime_get_ns()) : NULL;
	if (!scratch)
		return 0;
	if (cfg_outstanding)
		live_alloc__sampled(&scratch->sample);
	sample__unwind_from(ctx, scratch);
	return 0;
}

/* Stores the break, which does not change before the end of the call. */
SEC("?raw_tp")
int alloc_on_sys_enter(struct bpf_raw_tracepoint_args *ctx)
{
	struct alloc_thread *thread;

	if (ctx->args[1] != SYSCALL_BRK)
		return 0;
	thread = alloc_thread();
	if (thread)
		thread->brk = BPF_CORE_READ(bpf_get_current_task_btf(), mm, brk);
	return 0;
}

/* Returns the bytes by which the system call enlarged the process. */
static __always_inline __u64 alloc_grown(struct alloc_thread *thread, const struct pt_regs *regs)
{
	__u64 brk = thread->brk;

	thread->brk = 0;
	switch (arch__syscall(regs)) {
	case SYSCALL_MMAP:
		return arch__arg(regs, 3) & MAP_ANONYMOUS && arch__arg(regs, 2) & PROT_WRITE
			       ? arch__arg(regs, 1)
			       : 0;
	case SYSCALL_MREMAP:
		return arch__arg(regs, 2) > arch__arg(regs, 1)
			       ? arch__arg(regs, 2) - arch__arg(regs, 1)
			       : 0;
	case SYSCALL_BRK:
		return brk && arch__result(regs) > brk ? arch__result(regs) - brk : 0;
	default:
		return 0;
	}
}

SEC("?raw_tp")
int alloc_on_sys_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct alloc_thread *thread;
	struct scratch *scratch;
	struct pt_regs *regs;
	__u64 number, bytes, value;

	if (bpf_probe_read_kernel(&number, sizeof(number),
				  &arch__syscall((struct pt_regs *)ctx->args[0])) ||
	    (number != SYSCALL_MMAP && number != SYSCALL_BRK && number != SYSCALL_MREMAP))
		return 0;
	thread = alloc_thread();
	if (!thread)
		return 0;
	regs = &thread->regs;
	if (bpf_probe_read_kernel(regs, sizeof(*regs), (void *)ctx->args[0]) ||
	    arch__is_compat(regs->cs) || arch__result(regs) >= ERRORS_FIRST)
		return 0;
	bytes = alloc_grown(thread, regs);
	value = alloc_outer__mapped(&thread->outer, regs, bytes)
			? 0
			: alloc_value(&thread->mapped_left, bytes);
	scratch = value ? alloc_begin(bytes, value, bpf_ktime_get_ns()) : NULL;
	if (!scratch)
		return 0;
	SAMPLE_KERNEL_STACK(ctx, scratch, TRACING_FRAMES);
	scratch->cs = scratch->has_regs ? read_task_regs(scratch) : 0;
	sample__unwind(ctx, scratch);
	return 0;
}
