/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_OFF_CPU_BPF_H
#define BRAID_OFF_CPU_BPF_H

/* Records of threads that leave the CPU, and the weight of their waits, for both kinds of hooks
 * (bpf/off_cpu.bpf.c, bpf/off_cpu_before.bpf.c).
 *
 * The records are in a hash by thread id, not in task storage. The program at sched_waking needs
 * the record of another task than the current one, and a raw tracepoint cannot pass that task to
 * bpf_task_storage_get(). User space adds the threads that wait when the recording begins, and
 * reads the ones that wait when it ends. */

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
	if (preempted || !task_state) /* or the thread has yielded */
		return STATE_PREEMPTED;
	return task_state & TASK_STOPPED_OR_TRACED ? STATE_STOPPED : STATE_BLOCKED;
}

/* A switch takes one or two microseconds. The scheduler counts them as running time of the next
 * thread, from before sched_switch on (update_rq_clock() in __schedule(), kernel/sched/core.c). The
 * hooks run later than that. The difference can be computed when the thread leaves the CPU the next
 * time, and is then subtracted from its waits. Otherwise threads that switch tens of thousands of
 * times a second would wait longer than their wall time minus their running time. It is negligible
 * for long runs or waits, where the clocks' rates differ by more: */
#define SHORT_NS 1000000

static __always_inline void note_run(struct waiting_rec *rec, struct task_struct *task,
				     __u64 now_ns)
{
	__u64 exec_ns = task->se.sum_exec_runtime, run_ns = now_ns - rec->on_ns;

	if (rec->exec_ns && run_ns < SHORT_NS)
		rec->ahead_ns += exec_ns - rec->exec_ns - run_ns;
	rec->exec_ns = exec_ns;
}

/* The minimum part of a wait that remains is an eighth of its measured length. The rest of the
 * difference is subtracted from the next wait. */
#define RESERVE_DIVISOR 8

static __always_inline __u64 off_cpu__interval(struct waiting_rec *rec, __u64 off_ns, __u64 now_ns)
{
	__u64 interval_ns = now_ns - off_ns, taken_ns;

	if (interval_ns >= SHORT_NS) {
		rec->ahead_ns = 0;
		return interval_ns;
	}
	if (rec->ahead_ns <= 0) /* time of an interrupt or a hypervisor is not running time */
		return interval_ns;
	taken_ns = rec->ahead_ns;
	if (taken_ns > interval_ns - interval_ns / RESERVE_DIVISOR)
		taken_ns = interval_ns - interval_ns / RESERVE_DIVISOR;
	if (taken_ns >= interval_ns)
		taken_ns = interval_ns - 1;
	rec->ahead_ns -= taken_ns;
	return interval_ns - taken_ns;
}

/* Handles the current task, which leaves the CPU. @preempted and @task_state are those of
 * sched_switch. */
static __always_inline void off_cpu__leave(struct task_struct *task, int preempted,
					   __u64 task_state)
{
	__u32 tid = task__tid(task), tgid;
	/* This look-up comes first: threads that switch often have an entry, and need no other
	 * look-up. */
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

/* Decides on a sample of the wait that ends now, as budget__choose() does. */
static __always_inline int off_cpu__choose(struct waiting_rec *rec, __u32 event, __u64 off_ns,
					   __u64 now_ns, struct worth *ret_worth)
{
	__u64 interval_ns;

	if (off_ns < sample_from_ns) /* the part before the recording does not count */
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

/* Returns the current time, limited to the recording: an interval that is in progress at the end of
 * the recording counts until that end. */
static __always_inline __u64 off_cpu__now(void)
{
	__u64 now_ns = bpf_ktime_get_ns();

	return sample_until_ns && now_ns >= sample_until_ns ? sample_until_ns - 1 : now_ns;
}

#endif
