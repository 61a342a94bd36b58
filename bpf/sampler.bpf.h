/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_SAMPLER_BPF_H
#define BRAID_SAMPLER_BPF_H

/* Common code of triggers: the decision on a sample, its user registers, its kernel frames, and the
 * tail call to the unwinder (docs/internals/adding-an-event.md). */

#include "bpf/scratch.bpf.h"
#include "bpf/target.bpf.h"

extern __u64 sample_from_ns, sample_until_ns;
extern __u64 occurrences[2 * EVENTS_MAX];
extern struct rest_rec period_rests[2 * EVENTS_MAX];

/* Records the task's current system call, if there is one, and its futex. The kernel leaves -1 in
 * orig_ax if the kernel was entered by a fault, and a vector's complement for interrupts. */
static __always_inline void note_syscall(struct rec_sample *sample, const struct pt_regs *regs)
{
	__u64 number = arch__syscall(regs);

	if (number >= SYSCALLS_MAX || arch__is_compat(regs->cs))
		return;
	sample->condition.syscall = number;
	if (number == SYSCALL_FUTEX)
		sample->object = arch__arg(regs, 0);
}

/* Reads the user registers at entry to the kernel: those of the system call, fault or interrupt.
 * Returns the code segment, or 0 if there are none. */
static __noinline __attribute__((unused)) __u32 read_task_regs(struct scratch *scratch)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct unwind_state *u = &scratch->unwind;
	struct pt_regs *regs = &u->kernel_regs;

	if (task->flags & PF_KERNEL_CREATED || !task__mm(task))
		return 0;
	/* The kernel's struct pt_regs and the user-visible one have the same layout on x86-64. */
	if (bpf_probe_read_kernel(regs, sizeof(*regs), (void *)bpf_task_pt_regs(task)))
		return 0;
	arch__copy_regs(u->regs, regs);
	note_syscall(&scratch->sample, regs);
	return arch__is_user(regs->cs) ? regs->cs : 0; /* io_uring workers never run user code */
}

/* Returns 1 if the task executes another program by now, but still has the registers of the
 * previous program, whose memory no longer exists. User space may have overwritten the record of
 * on_exec with data on the previous program. A changed mm detects this, and the record is reset. */
static __always_inline int is_between_programs(struct task_struct *task, struct proc_rec *proc,
					       __u32 tgid, __u32 in_execve)
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
	target__write(tgid, proc);
	return 0;
}

/* Bit n of cfg_limited: the budget limits the samples of event n. Bit n of cfg_measured: the values
 * of its occurrences differ. */
extern const volatile __u32 cfg_limited, cfg_measured;

/* Returns 1 if this occurrence is the n-th (-c), like is_due(). Values that differ are added up, so
 * that the total is exact. */
static __always_inline int is_nth(__u32 event, __u64 period, struct worth *worth)
{
	int is_last = !((__sync_fetch_and_add(&occurrences[EVENT_AT(event)], 1) + 1) % period);

	if (!(cfg_measured & 1U << EVENT_AT(event))) {
		worth->weight *= period;
		worth->total *= period;
	} else if (is_last) {
		rest__take(&period_rests[EVENT_AT(event)], worth);
	} else {
		rest__add(&period_rests[EVENT_AT(event)], worth->weight, worth->total);
	}
	return is_last;
}

/* Returns 1 if this occurrence is sampled. @worth is its own, and becomes that of its sample, which
 * also represents earlier occurrences without a sample. */
static __noinline int is_due(__u32 event, __u64 now_ns, struct worth *worth)
{
	__u64 period = cfg_periods[EVENT_AT(event)] ?: 1;
	struct event_budget *own;
	struct budget_rec *budget;

	if (period > 1 && !is_nth(event, period, worth))
		return 0;
	budget = cfg_limited & ~cfg_intervals & 1U << EVENT_AT(event) ? budget__here() : NULL;
	if (!budget)
		return 1;
	own = budget__of(budget, event);
	own->occurrences++;
	if (!budget__has(budget, event, now_ns)) {
		rest__add(&own->rests[rest_epoch & 1], worth->weight, worth->total);
		own->skipped++;
		return 0;
	}
	rest__take(&own->rests[rest_epoch & 1], worth);
	return 1;
}

/* Claims scratch memory for a sample of the current task, which has no frames yet. @proc is the
 * target's entry; NULL: it is missing. Returns NULL if the sample is lost, which is counted. A lost
 * sample's worth is added to the rest of the event. */
static __always_inline struct scratch *sample__claim(__u32 event, __u64 now_ns,
						     const struct worth *worth,
						     const struct proc_rec *proc, __u32 tgid)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct rec_sample *sample;
	struct scratch *scratch = NULL;

	if (proc) {
		count(COUNT_SAMPLES);
		scratch = slot__claim() ? scratch__get() : NULL;
		if (!scratch)
			count(COUNT_SCRATCH);
	}
	if (!scratch) {
		rest__return(event, worth->weight, worth->total);
		return NULL;
	}
	scratch->has_regs = 0;
	scratch->has_values = 0;
	scratch->proc = *proc;
	scratch->walkers_left = proc->walkers;
	scratch->n_words = 0;
	scratch->cached.absent = 0;
	scratch->limited = cfg_limited >> EVENT_AT(event) & 1;
	sample = &scratch->sample;
	__builtin_memset(sample, 0, sizeof(*sample));
	sample->type = REC_SAMPLE;
	sample->time_ns = now_ns;
	sample->event = event;
	sample->condition = (struct rec_condition) { .state = STATE_RUNS, .syscall = NO_SYSCALL };
	sample->value = worth->value;
	sample->weight = worth->weight;
	sample->total = worth->total;
	sample->tgid = tgid;
	sample->tid = task__tid(task);
	sample->cpu = bpf_get_smp_processor_id();
	if (proc->flags & PROC_UNDECIDED)
		sample->flags = SAMPLE_UNDECIDED;
	bpf_get_current_comm(sample->comm, sizeof(sample->comm));
	return scratch;
}

/* Begins the sample of an occurrence of @event in the current task, with its own @value, @weight
 * and @total. @now_ns is the present time or shortly before. Returns NULL if the occurrence is not
 * sampled, or if the sample is lost, which is counted. */
static __noinline struct scratch *sample__begin_with(__u32 event, __u64 now_ns, __u64 value,
						     __u64 weight, __u64 total)
{
	struct worth worth = { value, weight, total };
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tgid = task__pid(task), in_execve;
	struct proc_rec *proc = bpf_map_lookup_elem(&targets, &tgid);
	struct scratch *scratch;

	if (now_ns < sample_from_ns || (sample_until_ns && now_ns >= sample_until_ns) ||
	    !target__is(task, tgid, proc))
		return NULL;
	in_execve = BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
	if (proc && proc->flags & PROC_STARTING && !in_execve)
		return NULL; /* the command's own activity begins with its exec */
	if (!is_due(event, now_ns, &worth))
		return NULL;
	proc = proc ?: target__get(bpf_get_current_task(), tgid);
	scratch = sample__claim(event, now_ns, &worth, proc, tgid);
	if (!scratch)
		return NULL;
	scratch->has_regs = !is_between_programs(task, &scratch->proc, tgid, in_execve) &&
			    !(scratch->proc.flags & PROC_STARTING);
	scratch->walkers_left = scratch->proc.walkers; /* may have been reset */
	return scratch;
}

static __always_inline struct scratch *sample__begin_of(__u32 event, __u64 now_ns,
							const struct worth *occurrence)
{
	return sample__begin_with(event, now_ns, occurrence->value, occurrence->weight,
				  occurrence->total);
}

/* Returns the worth of an occurrence with the common value of the event's occurrences. */
static __always_inline struct worth worth__usual(__u32 event)
{
	__u64 value = cfg_values[EVENT_AT(event)] ?: 1;

	return (struct worth) { value, 1, value };
}

/* As sample__begin_of(), with the event's usual worth. */
static __always_inline struct scratch *sample__begin_at(__u32 event, __u64 now_ns)
{
	struct worth worth = worth__usual(event);

	return sample__begin_of(event, now_ns, &worth);
}

static __always_inline struct scratch *sample__begin(__u32 event)
{
	return sample__begin_at(event, bpf_ktime_get_ns());
}

/* Adds the kernel's frames, for a trigger in the kernel. A macro, because each program type has its
 * own type of context. */
#define SAMPLE_KERNEL_STACK(ctx, scratch, skipped)                                                 \
	do {                                                                                       \
		long bytes = bpf_get_stack(ctx, (scratch)->words, KERNEL_FRAMES_MAX * 8, skipped); \
                                                                                                   \
		(scratch)->sample.flags |= SAMPLE_KERNEL_MODE;                                     \
		if (bytes > 0)                                                                     \
			(scratch)->sample.n_kernel = (scratch)->n_words = bytes / 8;               \
	} while (0)

/* Frames of the tracing itself that always exist: the program's and bpf_trace_run's. One of
 * __bpf_trace_NAME or __traceiter_NAME may follow, depending on the compiler and the kernel's
 * version. */
#define TRACING_FRAMES 2

/* Continues with the unwinder, if there are user registers to begin with. */
static __always_inline void sample__unwind(void *ctx, struct scratch *scratch)
{
	if (scratch->cs) {
		bpf_tail_call(ctx, &stages, STAGE_UNWIND);
		count(COUNT_WALK_TAIL_CALL);
	} else { /* there are only kernel frames */
		scratch->sample.flags |= SAMPLE_COMPLETE;
		if (!(bpf_get_current_task_btf()->flags & PF_KERNEL_CREATED)) /* in exec or exit */
			count(COUNT_NO_USER_REGS);
	}
	scratch__emit(scratch);
}

/* Unwinds from user registers that the trigger provides, as a uprobe does. */
static __always_inline void sample__unwind_from(struct pt_regs *ctx, struct scratch *scratch)
{
	scratch->cs = 0;
	if (scratch->has_regs) {
		arch__copy_regs(scratch->unwind.regs, ctx);
		scratch->cs = ctx->cs;
	}
	sample__unwind(ctx, scratch);
}

/* Unwinds like sample__unwind_from(), for a probe at a `ret`. It begins with the caller, at the
 * instruction after the call. */
static __always_inline void sample__unwind_from_caller(struct pt_regs *ctx, struct scratch *scratch)
{
	__u64 caller;

	scratch->cs = 0;
	if (scratch->has_regs) {
		arch__copy_regs(scratch->unwind.regs, ctx);
		scratch->cs = ctx->cs;
		if (!bpf_probe_read_user(&caller, sizeof(caller), (void *)ctx->rsp)) {
			scratch->unwind.regs[UNWIND_REG_RSP] += sizeof(caller);
			scratch->unwind.regs[UNWIND_REG_PC] = caller;
		}
	}
	sample__unwind(ctx, scratch);
}

#endif
