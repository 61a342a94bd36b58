// SPDX-License-Identifier: GPL-2.0
#include "bpf/off_cpu.bpf.h"

/* Waiting: intervals in which a thread is off the CPU.
 *
 * A switch is seen twice in its thread. The first is at the departure from the CPU (sched_switch,
 * where it is still the current task). The second is after the return (sched_exit_tp, from Linux
 * 6.16 on, at the end of __schedule() in kernel/sched/core.c). At the departure, only its time is
 * recorded. The stack is walked after the return, and only if the interval is sampled. The thread
 * has run no user code in between, its memory is accessible again, and the kernel's frames are
 * still those of the wait. Older kernels: bpf/off_cpu_before.bpf.c. */

/* Memory for list_threads, which runs only once at a time. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct waiting_thread);
} listed SEC(".maps");

/* Waits below the user's minimum are only summed up. */
__u64 waits_below = 0, waits_below_ns = 0;

/* Arguments: bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int
 * prev_state. */
SEC("?raw_tp")
int off_cpu_leave(struct bpf_raw_tracepoint_args *ctx)
{
	off_cpu__leave(bpf_get_current_task_btf(), ctx->args[0], ctx->args[3]);
	return 0;
}

static __always_inline int is_in_syscall(struct task_struct *task)
{
	const struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	__s64 number = -1;

	bpf_probe_read_kernel(&number, sizeof(number), &arch__syscall(regs));
	return number >= 0;
}

#define THREAD_BYTES 16384 /* kernel stack: THREAD_SIZE, arch/x86/include/asm/page_64_types.h */

/* Returns 1 if the program runs in an interrupt, whichever thread was interrupted. An interrupt of
 * the kernel runs on its own stack. The arguments of a raw tracepoint (bpf_trace_run1() in
 * kernel/trace/bpf_trace.c) are on the current stack. An interrupt of user code runs on the
 * thread's stack, and the thread is in no system call (arch/x86/include/asm/irq_stack.h).
 * preempt_count is not used: it has had three names, and none without CONFIG_KALLSYMS_ALL. This is
 * assembly, because the verifier allows comparisons of the context's address, but no arithmetic
 * with it. */
static __always_inline int is_interrupt(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 start = (__u64)BPF_CORE_READ(task, stack);
	__u64 end = start + THREAD_BYTES, outside = 1;

	asm volatile("if %[ctx] < %[start] goto +2\n"
		     "if %[ctx] >= %[end] goto +1\n"
		     "%[outside] = 0\n"
		     : [outside] "+r"(outside)
		     : [ctx] "r"(ctx), [start] "r"(start), [end] "r"(end));
	return outside || !(task->flags & PF_KERNEL_CREATED || is_in_syscall(task));
}

/* 1: wakers outside of the targets are not shown, because they may belong to another user.
 * Interrupts are shown. */
extern const volatile __u32 cfg_targets_only;

/* Begins the sample of the thread that wakes another one. */
static __always_inline struct scratch *waker__begin(int interrupt, __u32 event, __u64 now_ns,
						    struct worth *worth,
						    const struct task_struct *wakee)
{
	__u32 wakee_tgid = task__pid_of(wakee), tgid;
	struct task_struct *waker = bpf_get_current_task_btf();
	struct scratch *scratch;

	tgid = task__pid(waker);
	if (!interrupt && target__is(waker, tgid, bpf_map_lookup_elem(&targets, &tgid)))
		return sample__begin_of(event, now_ns, worth);
	/* For an interrupt, or a process that is not a target, the sample has the kernel's frames
	 * and the process of the woken thread. */
	if (now_ns < sample_from_ns || (sample_until_ns && now_ns >= sample_until_ns) ||
	    !target__is_any(wakee, wakee_tgid) || (cfg_targets_only && !interrupt) ||
	    !is_due(event, now_ns, worth))
		return NULL;
	scratch = sample__claim(event, now_ns, worth, target__get((__u64)wakee, wakee_tgid),
				wakee_tgid);
	if (scratch && interrupt) {
		scratch->sample.tid = 0;
		__builtin_memcpy(scratch->sample.comm, "(interrupt)", 12);
	}
	return scratch;
}

/* Returns 1 if the waker of this wait is sampled. If waits are sampled, too, they own the clock,
 * and the waker is sampled with its wait. */
static __always_inline int waker__is_due(struct waiting_rec *rec, __u64 interval_ns, __u64 now_ns,
					 struct worth *ret_worth)
{
	__u32 waits = off_cpu__event();

	if (waits)
		return budget__is_due(waits, &rec->clock, interval_ns, ret_worth);
	return budget__choose(cfg_numbers[EVENT_WAKEUP], &rec->clock, interval_ns, now_ns,
			      ret_worth);
}

/* Arguments: struct task_struct *p. Runs in the waking thread. */
SEC("?raw_tp")
int off_cpu_wake(struct bpf_raw_tracepoint_args *ctx)
{
	const struct task_struct *wakee = (const struct task_struct *)ctx->args[0];
	__u32 tid = task__tid_of(wakee), event = cfg_numbers[EVENT_WAKEUP];
	struct waiting_rec *rec = bpf_map_lookup_elem(&waiting, &tid);
	__u64 now_ns = bpf_ktime_get_ns(), interval_ns;
	struct scratch *scratch;
	struct worth worth;

	if (!rec || !rec->off_ns || rec->off_ns >= now_ns || rec->state == STATE_PREEMPTED)
		return 0;
	interval_ns = now_ns - rec->off_ns;
	if (interval_ns < cfg_minima[EVENT_AT(event)] ||
	    !waker__is_due(rec, interval_ns, now_ns, &worth))
		return 0;
	scratch = waker__begin(is_interrupt(ctx), event, now_ns, &worth, wakee);
	if (!scratch)
		return 0;
	rec->link = now_ns << 8 | (bpf_get_smp_processor_id() & 0xff);
	rec->peer = scratch->sample.tid;
	scratch->sample.link = rec->link;
	scratch->sample.peer = tid;
	SAMPLE_KERNEL_STACK(ctx, scratch, TRACING_FRAMES);
	scratch->cs = scratch->has_regs ? read_task_regs(scratch) : 0;
	sample__unwind(ctx, scratch);
	return 0;
}

/* Arguments: bool is_switch. Runs in the thread that has returned. */
SEC("?raw_tp")
int off_cpu_return(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tid = task__tid(task), event = off_cpu__event();
	struct waiting_rec *rec = bpf_map_lookup_elem(&waiting, &tid);
	struct scratch *scratch;
	__u64 off_ns, now_ns;
	struct worth worth;

	/* The hook also runs after a schedule() without a switch. */
	if (!rec || !rec->off_ns || !ctx->args[0])
		return 0;
	now_ns = off_cpu__now();
	off_ns = __sync_lock_test_and_set(&rec->off_ns, 0);
	rec->on_ns = now_ns;
	if (!event)
		return 0; /* only the waker is sampled */
	scratch = off_cpu__choose(rec, event, off_ns, now_ns, &worth)
			  ? sample__begin_of(event, now_ns, &worth)
			  : NULL;
	if (!scratch)
		return 0;
	scratch->sample.link = rec->link;
	scratch->sample.peer = rec->peer;
	scratch->sample.condition.state = rec->state;
	SAMPLE_KERNEL_STACK(ctx, scratch, TRACING_FRAMES);
	scratch->cs = scratch->has_regs ? read_task_regs(scratch) : 0;
	sample__unwind(ctx, scratch);
	return 0;
}

/* Stores the return probes that have replaced return addresses on the thread's stack. */
static __always_inline void put_returns(struct task_struct *task, struct waiting_thread *ret)
{
	const struct xol_area *area = BPF_CORE_READ(task, mm, uprobes_state.xol_area);
	const struct return_instance *instance =
		area ? BPF_CORE_READ(task, utask, return_instances) : NULL;
	__u32 i;

	ret->trampoline = area ? BPF_CORE_READ(area, vaddr) : 0;
	for (i = 0; i < WAITING_RETURNS_MAX && instance; i++) {
		ret->returns[i][0] = BPF_CORE_READ(instance, stack);
		ret->returns[i][1] = BPF_CORE_READ(instance, orig_ret_vaddr);
		instance = BPF_CORE_READ(instance, next);
	}
	ret->n_returns = i;
}

/* Lists waiting threads of targets for user space. User space cannot read their registers by other
 * means without stopping them. */
SEC("?iter/task")
int list_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u32 key = 0, tgid;
	struct waiting_thread *thread = bpf_map_lookup_elem(&listed, &key);
	struct pt_regs regs = {};
	long bytes;

	if (!task || !thread || task->flags & PF_KERNEL_CREATED)
		return 0;
	tgid = task__pid(task);
	if (!target__is_any(task, tgid))
		return 0;
	thread->tgid = tgid;
	thread->tid = task__tid(task);
	thread->runs = !task->__state;
	thread->cs = 0;
	thread->syscall = NO_SYSCALL;
	if (!bpf_probe_read_kernel(&regs, sizeof(regs), (void *)bpf_task_pt_regs(task)) &&
	    arch__is_user(regs.cs)) {
		arch__copy_regs(thread->regs, &regs);
		thread->cs = regs.cs;
		thread->syscall = arch__syscall(&regs);
	}
	thread->fs_base = arch__thread_pointer(task);
	thread->start_stack = BPF_CORE_READ(task, mm, start_stack);
	bpf_probe_read_kernel_str(thread->comm, sizeof(thread->comm), task->comm);
	bytes = bpf_get_task_stack(task, thread->kernel, sizeof(thread->kernel), 0);
	thread->n_kernel = bytes > 0 ? (__u64)bytes / 8 : 0;
	if (bpf_core_field_exists(task->utask))
		put_returns(task, thread);
	bpf_seq_write(ctx->meta->seq, thread, sizeof(*thread));
	return 0;
}
