/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_INTERVAL_BPF_H
#define BRAID_INTERVAL_BPF_H

/* Events whose value is the time between two occurrences in one thread. The start of an interval is
 * stored with the task, and is freed with it. */

#include "bpf/budget.bpf.h"
#include "bpf/sampler.bpf.h"

struct task_times {
	struct interval_clock clocks[2 * EVENTS_MAX]; /* by number of the event */
	__u64 begin_ns[2 * EVENTS_MAX]; /* by number of the event; 0: no interval has begun */
	__u64 syscall_ns;		/* start of the current system call `syscall`; 0: none */
	__u64 syscall;
	__u64 seen; /* 1: a selected system call of the task has begun or ended since the start */
	struct worth worth; /* that of the last interval; the BPF stack has no room for it */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_times);
} task_times __weak SEC(".maps");

/* Returns the current time, limited to the recording: an interval that is in progress at the end of
 * the recording counts until that end. */
static __always_inline __u64 interval__now(void)
{
	__u64 now_ns = bpf_ktime_get_ns();

	return sample_until_ns && now_ns >= sample_until_ns ? sample_until_ns - 1 : now_ns;
}

/* Returns 1 if the current task is sampled. */
static __noinline int is_target(void)
{
	const struct task_struct *task = bpf_get_current_task_btf();
	__u32 tgid = task__pid(bpf_get_current_task_btf());
	struct proc_rec *proc = tgid ? bpf_map_lookup_elem(&targets, &tgid) : NULL;

	return target__is(task, tgid, proc) && !(proc && proc->flags & PROC_STARTING);
}

/* Returns the data of the current task, and creates it if necessary. NULL: there is no memory,
 * which is counted. */
static __always_inline struct task_times *times__make(void)
{
	struct task_times *times = bpf_task_storage_get(&task_times, bpf_get_current_task_btf(), 0,
							BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!times)
		count(COUNT_INTERVAL_NO_MEMORY);
	return times;
}

/* Returns the weight of the sample for an interval of @event from @begin_ns to @now_ns, or NULL if
 * it is not sampled. The part before the recording does not count. @now_ns is interval__now(). */
static __always_inline const struct worth *interval__choose(struct task_times *times, __u32 event,
							    __u64 begin_ns, __u64 now_ns)
{
	__u64 value;

	if (begin_ns < sample_from_ns)
		begin_ns = sample_from_ns;
	if (begin_ns > now_ns)
		return NULL;
	value = now_ns > begin_ns ? now_ns - begin_ns : 1;
	return value >= cfg_minima[EVENT_AT(event)] &&
			       budget__choose(event, &times->clocks[EVENT_AT(event)], value, now_ns,
					      &times->worth)
		       ? &times->worth
		       : NULL;
}

/* Starts an interval. An earlier start without an end is discarded: pairs do not nest. */
static __always_inline int interval__begin(__u32 event)
{
	struct task_times *times = is_target() ? times__make() : NULL;

	if (times)
		times->begin_ns[EVENT_AT(event)] = bpf_ktime_get_ns();
	return 0;
}

/* Returns the weight of the sample for the interval that ends now, or NULL if it is not sampled. */
static __always_inline const struct worth *interval__end(__u32 event)
{
	__u64 *begin_ns, since_ns;
	struct task_times *times;

	if (!is_target())
		return NULL;
	times = bpf_task_storage_get(&task_times, bpf_get_current_task_btf(), 0, 0);
	begin_ns = times ? &times->begin_ns[EVENT_AT(event)] : NULL;
	if (!begin_ns || !*begin_ns) {
		count(COUNT_INTERVAL_UNMATCHED);
		return NULL;
	}
	since_ns = *begin_ns;
	*begin_ns = 0;
	return interval__choose(times, event, since_ns, interval__now());
}

/* Ends an interval as interval__end() does, but with the start @since_ns. It is called when a call
 * returns whose entry was seen. */
static __always_inline const struct worth *interval__end_since(__u32 event, __u64 since_ns)
{
	struct task_times *times = times__make();

	return times ? interval__choose(times, event, since_ns, interval__now()) : NULL;
}

#endif
