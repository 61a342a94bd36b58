/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_INTERVAL_BPF_H
#define BRAID_INTERVAL_BPF_H

/* Events whose value is a time between two occurrences in one thread. What is kept until the end
 * belongs to the task: it goes wherever that goes, and away with it. */

#include "bpf/budget.bpf.h"
#include "bpf/sampler.bpf.h"

struct task_times {
	__u64 clock_ns[2 * EVENTS_MAX]; /* as of bpf/budget.bpf.h, by number of the event */
	__u64 begin_ns[2 * EVENTS_MAX]; /* by number of the event; 0: none has begun */
	__u64 syscall_ns;		/* since when it is in the system call `syscall`; 0 */
	__u64 syscall;
	__u64 heard; /* 1: a system call that is wanted has begun or ended in it since we listen */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_times);
} task_times __weak SEC(".maps");

/* What had begun by the end of the recording is in it, up to then. */
static __always_inline __u64 interval__now(void)
{
	__u64 now_ns = bpf_ktime_get_ns();

	return sample_until_ns && now_ns >= sample_until_ns ? sample_until_ns - 1 : now_ns;
}

/* Is the current task one of those that are sampled? */
static __noinline int is_target(void)
{
	const struct task_struct *task = bpf_get_current_task_btf();
	__u32 tgid = task__pid(bpf_get_current_task_btf());
	struct proc_rec *proc = tgid ? bpf_map_lookup_elem(&targets, &tgid) : NULL;

	return target__is(task, tgid, proc) && !(proc && proc->flags & PROC_STARTING);
}

/* The current task's, made if it has none yet; NULL: no memory, which is counted. */
static __always_inline struct task_times *times__make(void)
{
	struct task_times *times = bpf_task_storage_get(&task_times, bpf_get_current_task_btf(), 0,
							BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!times)
		count(COUNT_INTERVAL_NO_MEMORY);
	return times;
}

/* The value of the sample of such an interval; 0: there is none. */
static __always_inline __u64 interval__value(struct task_times *times, __u32 event, __u64 begin_ns,
					     __u64 now_ns)
{
	__u64 value = now_ns > begin_ns ? now_ns - begin_ns : 1;
	__u64 *clock_ns = &times->clock_ns[EVENT_AT(event)];

	if (value < cfg_minima[EVENT_AT(event)])
		return 0;
	if (!*clock_ns) /* those of threads that begin together are to ring at different times */
		*clock_ns = bpf_get_prandom_u32() & (PERIOD_LEAST_NS - 1);
	return budget__value(clock_ns, value, now_ns);
}

/* What has begun before and has no end yet is forgotten: pairs do not nest. */
static __always_inline int interval__begin(__u32 event)
{
	struct task_times *times = is_target() ? times__make() : NULL;

	if (times)
		times->begin_ns[EVENT_AT(event)] = bpf_ktime_get_ns();
	return 0;
}

/* The value of the sample of the interval that ends now; 0: there is to be none. */
static __always_inline __u64 interval__end(__u32 event)
{
	__u64 *begin_ns, since_ns;
	struct task_times *times;

	if (!is_target())
		return 0;
	times = bpf_task_storage_get(&task_times, bpf_get_current_task_btf(), 0, 0);
	begin_ns = times ? &times->begin_ns[EVENT_AT(event)] : NULL;
	if (!begin_ns || !*begin_ns) {
		count(COUNT_INTERVAL_UNMATCHED);
		return 0;
	}
	since_ns = *begin_ns;
	*begin_ns = 0;
	return interval__value(times, event, since_ns, bpf_ktime_get_ns());
}

/* The same where it is known since when, at a return of a call whose entry was seen. */
static __always_inline __u64 interval__end_since(__u32 event, __u64 since_ns)
{
	struct task_times *times = times__make();

	return times ? interval__value(times, event, since_ns, bpf_ktime_get_ns()) : 0;
}

#endif
