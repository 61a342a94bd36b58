// SPDX-License-Identifier: GPL-2.0
#include "bpf/interval.bpf.h"

/* The durations of system calls. The sample is taken at the end, in the thread itself, where the
 * registers that the kernel has saved are still those of the call. */

#define SYSCALL_CLONE	 56
#define SYSCALL_FORK	 57
#define SYSCALL_VFORK	 58
#define SYSCALL_EXECVE	 59
#define SYSCALL_EXECVEAT 322
#define SYSCALL_CLONE3	 435

/* By number of the call: number of the event; 0: not selected. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SYSCALLS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} syscall_events SEC(".maps");

static __always_inline __u32 syscall__event(__u64 number)
{
	__u32 key = number, *event;

	event = number < SYSCALLS_MAX ? bpf_map_lookup_elem(&syscall_events, &key) : NULL;
	return event ? *event : 0;
}

/* Arguments of sys_enter: struct pt_regs *regs, long id. */
SEC("?raw_tp")
int on_syscall_enter(struct bpf_raw_tracepoint_args *ctx)
{
	const struct pt_regs *regs = (void *)ctx->args[0];
	__u64 number = ctx->args[1], cs = ARCH_MODE_COMPAT;
	struct task_times *times;

	if (!syscall__event(number) || !is_target())
		return 0;
	bpf_probe_read_kernel(&cs, sizeof(cs), &regs->cs);
	if (arch__is_compat(cs))
		return 0;
	times = times__make();
	if (!times)
		return 0;
	times->seen = 1;
	times->syscall = number;
	times->syscall_ns = bpf_ktime_get_ns();
	return 0;
}

/* Returns 1 for a call that creates a thread or a program. Its end is also seen in the new thread
 * or program, which has not made the call. */
static __always_inline int is_birth(__u64 number, __u64 failed)
{
	return number == SYSCALL_EXECVE || number == SYSCALL_EXECVEAT ||
	       (!failed && (number == SYSCALL_CLONE || number == SYSCALL_FORK ||
			    number == SYSCALL_VFORK || number == SYSCALL_CLONE3));
}

/* Handles a call whose beginning was not seen. If it is the thread's first seen syscall, it was in
 * progress when the recording began. Returns NULL if it is not selected. */
static __always_inline struct task_times *syscall__under_way(struct bpf_raw_tracepoint_args *ctx,
							     struct task_times *times,
							     __u64 *ret_number)
{
	struct {
		__u64 orig_rax, rip, cs; /* in this order in struct pt_regs */
	} regs;

	if ((times && times->seen) ||
	    bpf_probe_read_kernel(&regs, sizeof(regs),
				  &((struct pt_regs *)ctx->args[0])->orig_rax) ||
	    arch__is_compat(regs.cs) || !syscall__event(regs.orig_rax) ||
	    is_birth(regs.orig_rax, ctx->args[1]) || !is_target())
		return NULL;
	if (!times)
		times = times__make();
	/* User space may have reported it already, as a call that never ended. */
	if (!times || __sync_lock_test_and_set(&times->seen, 1))
		return NULL;
	*ret_number = regs.orig_rax;
	return times;
}

/* Arguments of sys_exit: struct pt_regs *regs, long ret. The kernel's frames here are left out,
 * because they have no relation to the finished call. */
SEC("?raw_tp")
int on_syscall_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_times *times =
		bpf_task_storage_get(&task_times, bpf_get_current_task_btf(), 0, 0);
	__u64 since_ns, now_ns, number = 0, failed = ctx->args[1];
	const struct worth *worth;
	struct scratch *scratch;
	__u32 event;

	since_ns = times ? __sync_lock_test_and_set(&times->syscall_ns, 0) : 0;
	if (since_ns) {
		number = times->syscall;
	} else {
		times = syscall__under_way(ctx, times, &number);
		since_ns = sample_from_ns;
	}
	event = syscall__event(number);
	now_ns = interval__now();
	if (!times || !event || !since_ns || since_ns > now_ns)
		return 0;
	worth = interval__choose(times, event, since_ns, now_ns);
	scratch = worth ? sample__begin_of(event, now_ns, worth) : NULL;
	if (!scratch)
		return 0;
	/* The program that made the call no longer exists. */
	if (!failed && (number == SYSCALL_EXECVE || number == SYSCALL_EXECVEAT))
		scratch->has_regs = 0;
	scratch->sample.flags |= SAMPLE_KERNEL_MODE;
	scratch->cs = scratch->has_regs ? read_task_regs(scratch) : 0;
	scratch->sample.condition.syscall = number;
	sample__unwind(ctx, scratch);
	return 0;
}
