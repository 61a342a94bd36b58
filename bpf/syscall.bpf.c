// SPDX-License-Identifier: GPL-2.0
#include "bpf/interval.bpf.h"

/* How long system calls take. The sample is taken at the end, in the thread itself, where the
 * registers that the kernel has saved are still those of the call. */

#define SYSCALL_EXECVE	 59
#define SYSCALL_EXECVEAT 322

/* By number of the call: that of the event; 0: it is not wanted. */
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

/* sys_enter's arguments: struct pt_regs *regs, long id */
SEC("?raw_tp")
int on_syscall_enter(struct bpf_raw_tracepoint_args *ctx)
{
	const struct pt_regs *regs = (void *)ctx->args[0];
	__u64 number = ctx->args[1], cs = CS_COMPAT;
	struct task_times *times;

	if (!syscall__event(number) || !is_target())
		return 0;
	bpf_probe_read_kernel(&cs, sizeof(cs), &regs->cs);
	if (cs == CS_COMPAT)
		return 0;
	times = times__make();
	if (!times)
		return 0;
	times->syscall = number;
	times->syscall_ns = bpf_ktime_get_ns();
	return 0;
}

/* sys_exit's arguments: struct pt_regs *regs, long ret. The kernel's frames here say nothing of the
 * call, which is over: they are left out. */
SEC("?raw_tp")
int on_syscall_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_times *times =
		bpf_task_storage_get(&task_times, bpf_get_current_task_btf(), 0, 0);
	__u64 value, since_ns, now_ns, failed = ctx->args[1];
	struct scratch *scratch;
	__u32 event, number;

	if (!times || !times->syscall_ns)
		return 0;
	since_ns = times->syscall_ns;
	number = times->syscall;
	times->syscall_ns = 0;
	event = syscall__event(number);
	if (!event)
		return 0;
	now_ns = bpf_ktime_get_ns();
	value = interval__value(times, event, since_ns, now_ns);
	scratch = value ? sample__begin_at(event, now_ns) : NULL;
	if (!scratch)
		return 0;
	scratch->sample.value *= value;
	/* The program that made the call is gone. */
	if (!failed && (number == SYSCALL_EXECVE || number == SYSCALL_EXECVEAT))
		scratch->has_regs = 0;
	scratch->sample.flags |= SAMPLE_KERNEL_MODE;
	scratch->cs = scratch->has_regs ? read_task_regs(scratch) : 0;
	scratch->sample.condition.syscall = number;
	sample__unwind(ctx, scratch);
	return 0;
}
