/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_OFF_CPU_BPF_H
#define BRAID_OFF_CPU_BPF_H

/* What is noted of threads that leave the CPU, and what their waits are worth, whichever hooks see
 * them (bpf/off_cpu.bpf.c, bpf/off_cpu_before.bpf.c).
 *
 * The note is in a hash by thread id, not in task storage: the program of sched_waking gets another
 * task than its own, which raw tracepoints cannot pass to bpf_task_storage_get(); user space puts
 * in threads that wait when the recording begins, and reads which wait when it ends. */

#include "bpf/sampler.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* user space: WAITING_MAX */
	__type(key, __u32);
	__type(value, struct waiting_rec);
} waiting __weak SEC(".maps");

extern __u64 waits_below, waits_below_ns;

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

/* A switch takes a microsecond or two, and the scheduler counts it as running, of whom it switches
 * to, from before sched_switch on (update_rq_clock() in __schedule(), kernel/sched/core.c). The
 * hooks are later. By how much is known when the thread leaves the next time, and is taken off its
 * waits then: else threads that switch tens of thousands of times a second would wait longer than
 * their wall time less what they have run. Where it runs or waits for long this makes no
 * difference, and the clocks' rates differ by more: */
#define SHORT_NS 1000000

static __always_inline void note_run(struct waiting_rec *rec, struct task_struct *task,
				     __u64 now_ns)
{
	__u64 exec_ns = task->se.sum_exec_runtime, run_ns = now_ns - rec->on_ns;

	if (rec->exec_ns && run_ns < SHORT_NS)
		rec->ahead_ns += exec_ns - rec->exec_ns - run_ns;
	rec->exec_ns = exec_ns;
}

/* The length of a wait, which keeps an eighth of what the hooks have seen: it is no shorter than
 * that, and what is taken off beyond it waits for the next one. */
#define KEPT_PART 8

static __always_inline __u64 off_cpu__interval(struct waiting_rec *rec, __u64 off_ns, __u64 now_ns)
{
	__u64 interval_ns = now_ns - off_ns, taken_ns;

	if (interval_ns >= SHORT_NS) {
		rec->ahead_ns = 0;
		return interval_ns;
	}
	if (rec->ahead_ns <= 0) /* an interrupt's time, or a hypervisor's, is no running */
		return interval_ns;
	taken_ns = rec->ahead_ns;
	if (taken_ns > interval_ns - interval_ns / KEPT_PART)
		taken_ns = interval_ns - interval_ns / KEPT_PART;
	if (taken_ns >= interval_ns)
		taken_ns = interval_ns - 1;
	rec->ahead_ns -= taken_ns;
	return interval_ns - taken_ns;
}

/* The current task leaves the CPU. `preempted` and `task_state` are sched_switch's. */
static __always_inline void off_cpu__leave(struct task_struct *task, int preempted,
					   __u64 task_state)
{
	__u32 tid = task__tid(task), tgid;
	/* First, as threads that switch often are known: one lookup is all that it takes them. */
	struct waiting_rec *rec = bpf_map_lookup_elem(&waiting, &tid), new = {};
	__u32 state = state_of(preempted, task_state);
	__u64 now_ns = bpf_ktime_get_ns();

	if (task_state & TASK_DEAD) {
		if (rec)
			bpf_map_delete_elem(&waiting, &tid);
		return;
	}
	if (rec) {
		rec->state = state;
		rec->link = 0;
		rec->peer = 0;
		rec->off_ns = now_ns;
		note_run(rec, task, now_ns);
		return;
	}
	tgid = task__pid(task);
	if (!tid || !target__is_any(task, tgid))
		return;
	new.state = state;
	new.off_ns = now_ns;
	new.exec_ns = task->se.sum_exec_runtime;
	if (bpf_map_update_elem(&waiting, &tid, &new, BPF_ANY))
		count(COUNT_WAITING_FULL);
}

/* Is the wait that ends now to be sampled? As budget__choose(). */
static __always_inline int off_cpu__choose(struct waiting_rec *rec, __u32 event, __u64 off_ns,
					   __u64 now_ns, struct worth *ret_worth)
{
	__u64 interval_ns;

	if (off_ns < sample_from_ns) /* of what began before the recording the part inside */
		off_ns = sample_from_ns;
	if (off_ns >= now_ns)
		return 0;
	interval_ns = off_cpu__interval(rec, off_ns, now_ns);
	if (interval_ns < cfg_minima[EVENT_AT(event)]) {
		__sync_fetch_and_add(&waits_below, 1);
		__sync_fetch_and_add(&waits_below_ns, interval_ns);
		return 0;
	}
	return budget__choose(event, &rec->clock, interval_ns, now_ns, ret_worth);
}

/* A time of the recording: what had begun by its end is in it, up to then. */
static __always_inline __u64 off_cpu__now(void)
{
	__u64 now_ns = bpf_ktime_get_ns();

	return sample_until_ns && now_ns >= sample_until_ns ? sample_until_ns - 1 : now_ns;
}

#endif
