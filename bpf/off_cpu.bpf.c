// SPDX-License-Identifier: GPL-2.0
#include "bpf/sampler.bpf.h"

/* Waiting: intervals in which a thread is off the CPU.
 *
 * A switch is seen twice in the thread that it is about: when it leaves the CPU (sched_switch,
 * which comes while it is still the current task) and when it has come back (sched_exit_tp,
 * Linux 6.16 on, at the end of __schedule() in kernel/sched/core.c). Leaving is only noted. The
 * stack is walked on the way back, and only if the interval is worth a sample: the thread has not
 * moved meanwhile, its memory is mapped again, and the kernel's frames are still those under which
 * it waited.
 *
 * The note is in a hash by thread id, not in task storage: the program of sched_waking gets another
 * task than its own, which raw tracepoints cannot pass to bpf_task_storage_get(); user space puts
 * in threads that wait when the recording begins, and reads which wait when it ends. */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* user space: WAITING_MAX */
	__type(key, __u32);
	__type(value, struct waiting_rec);
} waiting __weak SEC(".maps");

/* What is below the minimum that the user wants is only summed up. */
__u64 waits_below = 0, waits_below_ns = 0;

/* include/linux/sched.h */
#define TASK_STOPPED_OR_TRACED (4 | 8)
#define TASK_DEAD	       0x80

static __always_inline __u32 off_cpu__event(void)
{
	return cfg_numbers[EVENT_OFF_CPU] ?: cfg_numbers[EVENT_WALL];
}

static __always_inline __u32 state_of(int preempted, __u64 task_state)
{
	if (preempted || !task_state) /* or it has yielded */
		return STATE_PREEMPTED;
	return task_state & TASK_STOPPED_OR_TRACED ? STATE_STOPPED : STATE_BLOCKED;
}

/* (bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state) */
SEC("?raw_tp")
int off_cpu_leave(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tgid = task__pid(task), tid = task__tid(task);
	struct waiting_rec *rec, new = {};
	__u32 state = state_of(ctx->args[0], ctx->args[3]);

	if (!tid || !bpf_map_lookup_elem(&targets, &tgid))
		return 0;
	if (ctx->args[3] & TASK_DEAD) {
		bpf_map_delete_elem(&waiting, &tid);
		return 0;
	}
	rec = bpf_map_lookup_elem(&waiting, &tid);
	if (rec) {
		rec->state = state;
		rec->link = 0;
		rec->peer = 0;
		rec->off_ns = bpf_ktime_get_ns();
		return 0;
	}
	new.state = state;
	/* Clocks of threads that begin together are to ring at different times. */
	new.clock_ns = bpf_get_prandom_u32() & (PERIOD_LEAST_NS - 1);
	new.off_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&waiting, &tid, &new, BPF_ANY))
		count(COUNT_WAITING_FULL);
	return 0;
}

/* The value of the sample; 0: there is none. */
static __always_inline __u64 off_cpu__value(struct waiting_rec *rec, __u32 event, __u64 now_ns)
{
	__u64 interval_ns = now_ns - rec->off_ns;

	if (rec->off_ns > now_ns)
		return 0;
	if (interval_ns < cfg_minima[EVENT_AT(event)]) {
		__sync_fetch_and_add(&waits_below, 1);
		__sync_fetch_and_add(&waits_below_ns, interval_ns);
		return 0;
	}
	if (rec->link)
		return interval_ns; /* who has woken it is sampled, too */
	return budget__value(&rec->clock_ns, interval_ns, now_ns);
}

/* In the thread that has come back. */
SEC("?raw_tp")
int off_cpu_return(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tid = task__tid(task), event = off_cpu__event();
	struct waiting_rec *rec = bpf_map_lookup_elem(&waiting, &tid);
	struct scratch *scratch;
	__u64 value;

	if (!rec || !rec->off_ns)
		return 0;
	value = off_cpu__value(rec, event, bpf_ktime_get_ns());
	rec->off_ns = 0;
	scratch = value ? sample__begin(event) : NULL;
	if (!scratch)
		return 0;
	scratch->sample.value = value;
	scratch->sample.link = rec->link;
	scratch->sample.peer = rec->peer;
	scratch->sample.condition.state = rec->state;
	SAMPLE_KERNEL_STACK(ctx, scratch, TRACING_FRAMES);
	scratch->cs = scratch->has_regs ? read_task_regs(scratch) : 0;
	sample__unwind(ctx, scratch);
	return 0;
}
