/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_ALLOC_WINDOW_BPF_H
#define BRAID_ALLOC_WINDOW_BPF_H

/* Allocating calls, watched for short periods
 * (docs/decisions/0021-windows-by-the-programs-time.md).
 *
 * Each hit of a probe stops its thread for one or two microseconds, and makes it yield if another
 * task is to run. So a window is not a period of time, but a part of a thread's life. Its clock
 * stands still in a probe and while the thread waits for a CPU. All threads get the same width.
 * User space provides the cost of a hit, from the sums that are taken here. */

#include "bpf/alloc.h"
#include "bpf/budget.bpf.h"
#include "bpf/kernel.h"

/* Size of a function's code after its first byte, where a thread continues after the probe. */
#define ALLOC_SITE_BYTES 8

/* Minimum time between two allocations of a thread. */
#define ALLOC_CALL_NS 10

/* Cost of a sample whose end is unknown. */
#define ALLOC_SAMPLE_NS 5000

/* A thread within the window. */
struct alloc_span {
	__u64 window;		      /* number of its window; 0: none */
	__u64 delay_ns;		      /* its wait time for a CPU until the window */
	__u64 lost_ns;		      /* time in probes since then */
	__u64 clock_ns;		      /* its clock at the last hit */
	__u64 last_ns;		      /* minimum of its clock at the next hit */
	__u64 hit_ns;		      /* time of the last hit; 0: none */
	__u64 sample_ns;	      /* start of the sample at the last hit; 0: none */
	__u64 switches;		      /* number of the thread's context switches at the last hit */
	__u64 site, other_site;	      /* the last two sites that were hit */
	__u64 trap_ticks, own_ticks;  /* since the last hit */
	__u64 before_ns;	      /* time of the last hit outside of windows */
	__u64 seen_ns, seen_delay_ns; /* time of the last opening, and delay_ns then */
};

/* Written by user space between windows, except `visit`. */
volatile struct alloc_window alloc_window = {};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct alloc_sums);
} alloc_sums __weak SEC(".maps");

static __always_inline struct alloc_sums *alloc_sums_here(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&alloc_sums, &key);
}

/* Returns the thread's own time since the start of its window. */
static __always_inline __u64 alloc_span_clock(const struct alloc_span *span,
					      struct task_struct *task, __u64 now_ns, __u64 lost_ns)
{
	__u64 stood_ns = lost_ns + task->sched_info.run_delay - span->delay_ns;
	__u64 passed_ns = now_ns - alloc_window.opened_ns;

	return (__s64)passed_ns > (__s64)stood_ns ? passed_ns - stood_ns : 0;
}

/* Returns the life of the thread since the last window, or since windows exist. It is negative,
 * modulo 2^64, if a wait for a CPU has ended that had not begun then: the sum is correct. */
static __always_inline __u64 alloc_span_life(const struct alloc_span *span,
					     struct task_struct *task, __u64 now_ns)
{
	__u64 since_ns = alloc_window.since_ns, start_ns = task->start_time;

	if (span->seen_ns <= since_ns)
		return now_ns - (start_ns > since_ns ? start_ns : since_ns);
	return now_ns - span->seen_ns - (task->sched_info.run_delay - span->seen_delay_ns);
}

/* Begins a thread's window. Waits for a CPU do not count, so that a thread gets no more windows
 * because it waited. */
static __always_inline void alloc_span_begin(struct alloc_span *span, struct task_struct *task,
					     __u64 now_ns)
{
	alloc_window.life_ns += alloc_span_life(span, task, now_ns);
	span->seen_ns = now_ns;
	span->seen_delay_ns = task->sched_info.run_delay;
	span->delay_ns = span->seen_delay_ns;
	span->lost_ns = 0;
	span->clock_ns = 0;
	span->last_ns = 0;
	span->hit_ns = 0;
	span->sample_ns = 0;
	span->trap_ticks = 0;
	span->own_ticks = 0;
	/* A thread that waits for a CPU is where it was stopped, perhaps by the opening of windows,
	 * or where it woke up. That is not a fair sample of its positions. */
	span->window = task->__state || task->on_cpu ? alloc_window.number : 0;
	alloc_window.threads += span->window != 0;
}

/* Opens the window after all threads have begun. A window represents life of threads, of which each
 * thread has the same part in it. Windows come when there are threads to visit, which is random. To
 * have equal weight, each represents half of the life that is not represented yet. */
static __always_inline void alloc_window_open(__u64 now_ns)
{
	__u64 covered_ns = alloc_window.threads * alloc_window.width_ns;
	__u64 represented_ns = alloc_window.life_ns / 2;

	if (!covered_ns || (__s64)alloc_window.life_ns <= 0)
		return;
	alloc_window.scale = (represented_ns << 8) / covered_ns;
	alloc_window.represented_ns = represented_ns;
	alloc_window.life_ns -= represented_ns;
	alloc_window.opened_ns = now_ns;
	alloc_window.opened = alloc_window.number;
}

/* Checks whether a thread's window has ended. The clock of a thread that waits for a CPU has not
 * advanced since its last check. */
static __always_inline void alloc_span_look(struct alloc_span *span, struct task_struct *task,
					    struct alloc_sums *sums, __u64 now_ns)
{
	__u64 clock_ns = span->clock_ns, width_ns = alloc_window.width_ns;

	if (span->window != alloc_window.number)
		return;
	if (task->__state || task->on_cpu)
		clock_ns = alloc_span_clock(span, task, now_ns, span->lost_ns);
	if (clock_ns < width_ns)
		sums->unfinished++;
	if (alloc_window.visit == ALLOC_CLOSE)
		span->window = 0;
}

/* Adds the time since the last hit to the estimate of a hit's cost. */
static __always_inline void alloc_span_gap(struct alloc_span *span, struct alloc_sums *sums,
					   __u64 now_ns, __u64 switches)
{
	__u64 sample_ns = 0, end_ns;

	if (span->sample_ns) {
		end_ns = budget__emitted(span->sample_ns);
		sample_ns = end_ns && end_ns < now_ns ? end_ns - span->sample_ns : ALLOC_SAMPLE_NS;
		span->lost_ns += sample_ns;
		span->sample_ns = 0;
	}
	if (span->hit_ns && span->switches == switches) {
		sums->gaps++;
		sums->gap_ns += now_ns - span->hit_ns -
				alloc_window.tick_ns * (span->trap_ticks + span->own_ticks);
		sums->sample_ns += sample_ns;
		sums->trap_ticks += span->trap_ticks;
		sums->own_ticks += span->own_ticks;
	}
	span->trap_ticks = 0;
	span->own_ticks = 0;
}

/* Handles a hit within the thread's window. Returns 1 if the thread would have made this call in
 * the window without probes, too. */
static __always_inline int alloc_span_hit(struct alloc_span *span, struct alloc_sums *sums,
					  __u64 now_ns, __u64 site)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 switches = task->nvcsw + task->nivcsw, lost_ns;

	if (!span->hit_ns) { /* the previous hit may have lasted into the window */
		lost_ns = span->before_ns + alloc_window.cost_ns - alloc_window.opened_ns;
		if ((__s64)lost_ns > 0)
			span->lost_ns += lost_ns;
	}
	alloc_span_gap(span, sums, now_ns, switches);
	span->hit_ns = now_ns;
	span->switches = switches;
	if (span->site != site) {
		span->other_site = span->site;
		span->site = site;
	}
	span->clock_ns = alloc_span_clock(span, task, now_ns, span->lost_ns);
	if (span->clock_ns <
	    span->last_ns) { /* a hit was cheaper than others: not before the last */
		span->lost_ns -= span->last_ns - span->clock_ns;
		span->clock_ns = span->last_ns;
	}
	span->last_ns = span->clock_ns + ALLOC_CALL_NS;
	span->lost_ns += alloc_window.cost_ns;
	if (span->clock_ns >= alloc_window.width_ns)
		return 0;
	if (sums->window != span->window) {
		sums->window = span->window;
		sums->lost_ns = 0;
	}
	if (span->lost_ns > sums->lost_ns)
		sums->lost_ns = span->lost_ns;
	return 1;
}

static __always_inline void alloc_span_count(const struct alloc_span *span, struct alloc_sums *sums,
					     __u64 bytes)
{
	__u64 lost_ns = span->lost_ns - alloc_window.cost_ns;

	sums->calls++;
	sums->bytes += bytes;
	if (span->clock_ns + (lost_ns - ALLOC_LESS(lost_ns)) < alloc_window.width_ns)
		sums->less_bytes += bytes;
}

/* Returns @value times the scale of the window. */
static __always_inline __u64 alloc_scaled(__u64 value)
{
	__u64 scale = alloc_window.scale;

	return value >> 24 ? (value >> 8) * scale : value * scale >> 8;
}

/* Returns 1 if the thread is at or directly after one of the last two sites, or at the kernel's
 * copy of the probed instruction. */
static __always_inline int alloc_span_is_at_site(const struct alloc_span *span,
						 struct task_struct *task, __u64 ip)
{
	__u64 copy = BPF_CORE_READ(task, utask, xol_vaddr);

	return ip - span->site <= ALLOC_SITE_BYTES || ip - span->other_site <= ALLOC_SITE_BYTES ||
	       (copy && ip - copy < 16);
}

#endif
