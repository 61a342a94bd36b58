// SPDX-License-Identifier: GPL-2.0
#include "bpf/scratch.bpf.h"

/* What triggers samples: one program for each type that events need, and then, by tail calls, the
 * same stages for all of them (docs/adding-an-event.md). */

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 cfg_ring_wakeup_bytes = 1 << 20;
const volatile __u32 cfg_pidns_ino = 0;
const volatile __u32 cfg_locks = 0;
const volatile __u32 cfg_slots = 1;

/* Of an object by itself: what its type is. */
const volatile __u32 cfg_slot_first SEC(".rodata.type") = 0;
const volatile __u32 cfg_slot_end SEC(".rodata.type") = 1;
const volatile __u32 cfg_tableless SEC(".rodata.type") = 0; /* bit n: hook of walker slot n */

__u32 last_code = 0;
__u32 last_program = 0;

__u64 sample_until_ns = 0; /* user space may set it, or to an earlier time; 0: no end */

/* By number of the event: of so many occurrences one is sampled; what each is worth, in the event's
 * unit; below what value there is no sample; and the occurrences that there were. */
const volatile __u64 cfg_periods[2 * EVENTS_MAX] = {};
const volatile __u64 cfg_values[2 * EVENTS_MAX] = {};
const volatile __u64 cfg_minima[2 * EVENTS_MAX] = {};
__u64 occurrences[2 * EVENTS_MAX] = {};

const volatile __u32 cfg_numbers[EVENT_SLOTS_N] = {}; /* 0: it is not of this session */

#define COPY_REGS(to, from)                                                             \
	do {                                                                            \
		(to)[0] = (from)->rax, (to)[1] = (from)->rdx, (to)[2] = (from)->rcx;    \
		(to)[3] = (from)->rbx, (to)[4] = (from)->rsi, (to)[5] = (from)->rdi;    \
		(to)[6] = (from)->rbp, (to)[7] = (from)->rsp, (to)[8] = (from)->r8;     \
		(to)[9] = (from)->r9, (to)[10] = (from)->r10, (to)[11] = (from)->r11;   \
		(to)[12] = (from)->r12, (to)[13] = (from)->r13, (to)[14] = (from)->r14; \
		(to)[15] = (from)->r15, (to)[16] = (from)->rip;                         \
	} while (0)

#define SYSCALLS_MAX 1024 /* of x86-64 there are some 470; what is above is an error or x32's */
#define CS_COMPAT    0x23 /* __USER32_CS: another numbering */

/* Which system call the task is in, if it is; and which futex it is about. The kernel leaves -1 in
 * orig_ax where it was entered by a fault, and a vector's complement for interrupts. */
static __always_inline void note_syscall(struct rec_sample *sample, const struct pt_regs *regs)
{
	__u64 number = regs->orig_rax;

	if (number >= SYSCALLS_MAX || regs->cs == CS_COMPAT)
		return;
	sample->condition.syscall = number;
	if (number == SYSCALL_FUTEX)
		sample->object = regs->rdi;
}

/* User registers at entry to the kernel: those of the system call, fault or interrupt. Returns the
 * code segment, 0 if there are none. */
static __noinline __u32 read_task_regs(struct scratch *scratch)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct unwind_state *u = &scratch->unwind;
	struct pt_regs *regs = &u->kernel_regs;

	if (task->flags & PF_KTHREAD || !task__mm(task))
		return 0;
	/* The kernel's struct pt_regs and the user-visible one have the same layout on x86-64. */
	if (bpf_probe_read_kernel(regs, sizeof(*regs), (void *)bpf_task_pt_regs(task)))
		return 0;
	COPY_REGS(u->regs, regs);
	note_syscall(&scratch->sample, regs);
	return regs->cs & CS_USER_MASK ? regs->cs : 0; /* io_uring workers never were there */
}

/* Does the task execute something else by now, while its registers are still those of the program
 * before, of which the memory is gone? What on_exec has noted can have been overwritten by what
 * user space published of that program just then: other memory shows it. */
static __always_inline int is_between_programs(struct task_struct *task, struct proc_rec *proc,
					       __u32 in_execve)
{
	__u64 mm = (__u64)task__mm(task);

	if (!mm || proc->mm == mm)
		return 0;
	if (in_execve)
		return proc->mm != 0;
	if (proc->mm) {
		proc->space = 0;
		proc->walkers = 0;
		proc->program = program__new();
	}
	proc->mm = mm;
	return 0;
}

/* Is this one of those that are sampled? */
static __always_inline int is_due(__u32 event)
{
	__u64 period = cfg_periods[EVENT_AT(event)];

	return period <= 1 ||
	       !((__sync_fetch_and_add(&occurrences[EVENT_AT(event)], 1) + 1) % period);
}

/* Begins the sample of an occurrence of `event` in the current task. NULL: it is not sampled, or it
 * is lost, which is counted. */
static __noinline struct scratch *sample__begin(__u32 event)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tgid = task__pid(task), in_execve;
	struct proc_rec *proc = bpf_map_lookup_elem(&targets, &tgid);
	__u64 now_ns = bpf_ktime_get_ns();
	struct rec_sample *sample;
	struct scratch *scratch;

	if (!proc || !tgid || (sample_until_ns && now_ns >= sample_until_ns))
		return NULL;
	in_execve = BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
	if (proc->flags & PROC_STARTING && !in_execve)
		return NULL; /* what the command has to do with begins with its exec */
	if (!is_due(event))
		return NULL;
	count(COUNT_SAMPLES);
	scratch = slot__claim() ? scratch__get() : NULL;
	if (!scratch) {
		count(COUNT_SCRATCH);
		return NULL;
	}
	scratch->has_regs =
		!is_between_programs(task, proc, in_execve) && !(proc->flags & PROC_STARTING);
	scratch->proc = *proc;
	scratch->walkers_left = proc->walkers;
	scratch->n_words = 0;
	sample = &scratch->sample;
	__builtin_memset(sample, 0, sizeof(*sample));
	sample->type = REC_SAMPLE;
	sample->time_ns = now_ns;
	sample->event = event;
	sample->condition = (struct rec_condition) { .state = STATE_RUNS, .syscall = NO_SYSCALL };
	sample->value = (cfg_periods[EVENT_AT(event)] ?: 1) * (cfg_values[EVENT_AT(event)] ?: 1);
	sample->tgid = tgid;
	sample->tid = task__tid(task);
	sample->cpu = bpf_get_smp_processor_id();
	bpf_get_current_comm(sample->comm, sizeof(sample->comm));
	return scratch;
}

/* In the kernel: with the frames there. A macro, as the context is another type for each. */
#define SAMPLE_KERNEL_STACK(ctx, scratch, skipped)                                                 \
	do {                                                                                       \
		long bytes = bpf_get_stack(ctx, (scratch)->words, KERNEL_FRAMES_MAX * 8, skipped); \
                                                                                                   \
		(scratch)->sample.flags |= SAMPLE_KERNEL_MODE;                                     \
		if (bytes > 0)                                                                     \
			(scratch)->sample.n_kernel = (scratch)->n_words = bytes / 8;               \
	} while (0)

/* On to the unwinder, if there are user registers to begin with. */
static __always_inline void sample__unwind(void *ctx, struct scratch *scratch)
{
	if (scratch->cs) {
		bpf_tail_call(ctx, &stages, STAGE_UNWIND);
		count(COUNT_WALK_TAIL_CALL);
	} else { /* in the middle of exec or exit: the kernel's frames are all there are */
		scratch->sample.flags |= SAMPLE_COMPLETE;
		count(COUNT_NO_USER_REGS);
	}
	scratch__emit(scratch);
}

SEC("?perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	__u64 event = bpf_get_attach_cookie(ctx);
	/* A perf event that a child has inherited (a breakpoint's) has the program, but not its
	 * cookie: the session's first event is the only one of these. */
	struct scratch *scratch = sample__begin(event ? event : 1);

	if (!scratch)
		return 0;
	scratch->cs = 0;
	if (!(ctx->regs.cs & CS_USER_MASK)) {
		SAMPLE_KERNEL_STACK(ctx, scratch, 0);
		if (scratch->has_regs)
			scratch->cs = read_task_regs(scratch);
	} else if (scratch->has_regs) {
		COPY_REGS(scratch->unwind.regs, &ctx->regs);
		scratch->cs = ctx->regs.cs;
	}
	sample__unwind(ctx, scratch);
	return 0;
}

/* Frames of the tracing itself that are always there: the program's and bpf_trace_run's. One of
 * __bpf_trace_NAME or __traceiter_NAME may follow, as the compiler and the kernel's version have
 * it.
 */
#define TRACING_FRAMES 2

static __always_inline int on_tracepoint(struct bpf_raw_tracepoint_args *ctx, __u32 event)
{
	struct scratch *scratch = sample__begin(event);

	if (!scratch)
		return 0;
	SAMPLE_KERNEL_STACK(ctx, scratch, TRACING_FRAMES);
	scratch->cs = scratch->has_regs ? read_task_regs(scratch) : 0;
	sample__unwind(ctx, scratch);
	return 0;
}

/* One for each event that a session can have: raw tracepoints have had no attach cookie until Linux
 * 6.10. */
#define ON_TRACEPOINT(event)                                           \
	SEC("?raw_tp")                                                 \
	int on_tracepoint_##event(struct bpf_raw_tracepoint_args *ctx) \
	{                                                              \
		return on_tracepoint(ctx, event);                      \
	}

ON_TRACEPOINT(1)
ON_TRACEPOINT(2)
ON_TRACEPOINT(3)
ON_TRACEPOINT(4)
ON_TRACEPOINT(5)
ON_TRACEPOINT(6)
ON_TRACEPOINT(7)
ON_TRACEPOINT(8)
ON_TRACEPOINT(9)
ON_TRACEPOINT(10)
ON_TRACEPOINT(11)
ON_TRACEPOINT(12)
ON_TRACEPOINT(13)
ON_TRACEPOINT(14)
ON_TRACEPOINT(15)
ON_TRACEPOINT(16)
_Static_assert(EVENTS_MAX == 16, "a program for each");

SEC("?uprobe")
int on_uprobe(struct pt_regs *ctx)
{
	struct scratch *scratch = sample__begin(bpf_get_attach_cookie(ctx));

	if (!scratch)
		return 0;
	scratch->cs = 0;
	if (scratch->has_regs) {
		COPY_REGS(scratch->unwind.regs, ctx);
		scratch->cs = ctx->cs;
	}
	sample__unwind(ctx, scratch);
	return 0;
}
