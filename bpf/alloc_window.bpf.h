/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_ALLOC_WINDOW_BPF_H
#define BRAID_ALLOC_WINDOW_BPF_H

/* Calls that allocate, watched for a moment (docs/decisions/0021-windows-by-the-programs-time.md).
 *
 * Each hit of a probe stops its thread for a microsecond or two, and makes it give way where
 * another task is to run. So a window is no stretch of time, but of a thread's life: of its own
 * clock, which stands still in a probe and while it waits for a CPU. All threads get the same of
 * it. What a hit takes is told by user space, which has it from the sums that are taken here. */

#include "bpf/alloc.h"
#include "bpf/budget.bpf.h"
#include "bpf/kernel.h"

/* Code of a function after its first byte: there a thread goes on after the probe. */
#define ALLOC_SITE_BYTES 8

/* No thread allocates again in less time. */
#define ALLOC_CALL_NS 10

/* What a sample takes, if its end is not known. */
#define ALLOC_SAMPLE_NS 5000

/* A thread within the window. */
struct alloc_turn {
	__u64 window;		      /* number of the one that it has; 0: none */
	__u64 delay_ns;		      /* how long it had waited for a CPU by then */
	__u64 lost_ns;		      /* since then, to probes */
	__u64 clock_ns;		      /* its clock at the last hit */
	__u64 last_ns;		      /* and what it is at least at the next one */
	__u64 hit_ns;		      /* when that was; 0: there was none */
	__u64 sample_ns;	      /* a sample was begun at it; 0: none was */
	__u64 switches;		      /* of the thread, at it */
	__u64 site, other_site;	      /* the last two that were hit */
	__u64 trap_ticks, own_ticks;  /* since the last hit */
	__u64 before_ns;	      /* the last hit that was in no window */
	__u64 seen_ns, seen_delay_ns; /* when the last one opened, and as delay_ns */
};

/* Written by user space between windows, but for `visit`. */
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

/* How far the thread has got in its window. */
static __always_inline __u64 alloc_turn_clock(const struct alloc_turn *turn,
					      struct task_struct *task, __u64 now_ns, __u64 lost_ns)
{
	__u64 stood_ns = lost_ns + task->sched_info.run_delay - turn->delay_ns;
	__u64 passed_ns = now_ns - alloc_window.opened_ns;

	return (__s64)passed_ns > (__s64)stood_ns ? passed_ns - stood_ns : 0;
}

/* How long it has lived since the last window, or since there are any. Less than nothing, modulo
 * 2^64, where a wait for a CPU is over that was none yet then: it adds up. */
static __always_inline __u64 alloc_turn_life(const struct alloc_turn *turn,
					     struct task_struct *task, __u64 now_ns)
{
	__u64 since_ns = alloc_window.since_ns, start_ns = task->start_time;

	if (turn->seen_ns <= since_ns)
		return now_ns - (start_ns > since_ns ? start_ns : since_ns);
	return now_ns - turn->seen_ns - (task->sched_info.run_delay - turn->seen_delay_ns);
}

/* Without their waits for a CPU, that is: so a thread gets no more windows for having waited. */
static __always_inline void alloc_turn_begin(struct alloc_turn *turn, struct task_struct *task,
					     __u64 now_ns)
{
	alloc_window.life_ns += alloc_turn_life(turn, task, now_ns);
	turn->seen_ns = now_ns;
	turn->seen_delay_ns = task->sched_info.run_delay;
	turn->delay_ns = turn->seen_delay_ns;
	turn->lost_ns = 0;
	turn->clock_ns = 0;
	turn->last_ns = 0;
	turn->hit_ns = 0;
	turn->sample_ns = 0;
	turn->trap_ticks = 0;
	turn->own_ticks = 0;
	/* Where it waits for a CPU is where it was stopped, maybe by those who open windows, or
	 * where it has woken up: that is no fair sample of where it is. */
	turn->window = task->__state || task->on_cpu ? alloc_window.number : 0;
	alloc_window.threads += turn->window != 0;
}

/* All threads have been begun with. What windows tell of is life, of which each thread has the same
 * in this one. They come when there are threads to look at, which is by chance: so that they count
 * alike, each tells of half of what is still to be told of. */
static __always_inline void alloc_window_open(__u64 now_ns)
{
	__u64 covered_ns = alloc_window.threads * alloc_window.width_ns;
	__u64 told_ns = alloc_window.life_ns / 2;

	if (!covered_ns || (__s64)alloc_window.life_ns <= 0)
		return;
	alloc_window.scale = (told_ns << 8) / covered_ns;
	alloc_window.told_ns = told_ns;
	alloc_window.life_ns -= told_ns;
	alloc_window.opened_ns = now_ns;
	alloc_window.opened = alloc_window.number;
}

/* Not over yet? One that waits has got no further than it was when it was seen last. */
static __always_inline void alloc_turn_look(struct alloc_turn *turn, struct task_struct *task,
					    struct alloc_sums *sums, __u64 now_ns)
{
	__u64 clock_ns = turn->clock_ns, width_ns = alloc_window.width_ns;

	if (turn->window != alloc_window.number)
		return;
	if (task->__state || task->on_cpu)
		clock_ns = alloc_turn_clock(turn, task, now_ns, turn->lost_ns);
	if (clock_ns < width_ns)
		sums->unfinished++;
	if (alloc_window.visit == ALLOC_CLOSE)
		turn->window = 0;
}

/* What the time since the last hit tells of what a hit takes. */
static __always_inline void alloc_turn_gap(struct alloc_turn *turn, struct alloc_sums *sums,
					   __u64 now_ns, __u64 switches)
{
	__u64 sample_ns = 0, end_ns;

	if (turn->sample_ns) {
		end_ns = budget__emitted(turn->sample_ns);
		sample_ns = end_ns && end_ns < now_ns ? end_ns - turn->sample_ns : ALLOC_SAMPLE_NS;
		turn->lost_ns += sample_ns;
		turn->sample_ns = 0;
	}
	if (turn->hit_ns && turn->switches == switches) {
		sums->gaps++;
		sums->gap_ns += now_ns - turn->hit_ns -
				alloc_window.tick_ns * (turn->trap_ticks + turn->own_ticks);
		sums->sample_ns += sample_ns;
		sums->trap_ticks += turn->trap_ticks;
		sums->own_ticks += turn->own_ticks;
	}
	turn->trap_ticks = 0;
	turn->own_ticks = 0;
}

/* A hit within the thread's window: is it one that the thread would have made in that time without
 * probes, too? */
static __always_inline int alloc_turn_hit(struct alloc_turn *turn, struct alloc_sums *sums,
					  __u64 now_ns, __u64 site)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 switches = task->nvcsw + task->nivcsw, lost_ns;

	if (!turn->hit_ns) { /* the last one before may have lasted into the window */
		lost_ns = turn->before_ns + alloc_window.cost_ns - alloc_window.opened_ns;
		if ((__s64)lost_ns > 0)
			turn->lost_ns += lost_ns;
	}
	alloc_turn_gap(turn, sums, now_ns, switches);
	turn->hit_ns = now_ns;
	turn->switches = switches;
	if (turn->site != site) {
		turn->other_site = turn->site;
		turn->site = site;
	}
	turn->clock_ns = alloc_turn_clock(turn, task, now_ns, turn->lost_ns);
	if (turn->clock_ns <
	    turn->last_ns) { /* a hit was cheaper than others: not before the last */
		turn->lost_ns -= turn->last_ns - turn->clock_ns;
		turn->clock_ns = turn->last_ns;
	}
	turn->last_ns = turn->clock_ns + ALLOC_CALL_NS;
	turn->lost_ns += alloc_window.cost_ns;
	if (turn->clock_ns >= alloc_window.width_ns)
		return 0;
	if (sums->window != turn->window) {
		sums->window = turn->window;
		sums->lost_ns = 0;
	}
	if (turn->lost_ns > sums->lost_ns)
		sums->lost_ns = turn->lost_ns;
	return 1;
}

static __always_inline void alloc_turn_count(const struct alloc_turn *turn, struct alloc_sums *sums,
					     __u64 bytes)
{
	__u64 lost_ns = turn->lost_ns - alloc_window.cost_ns;

	sums->calls++;
	sums->bytes += bytes;
	if (turn->clock_ns + (lost_ns - ALLOC_LESS(lost_ns)) < alloc_window.width_ns)
		sums->less_bytes += bytes;
}

/* `value` times the window's scale. */
static __always_inline __u64 alloc_scaled(__u64 value)
{
	__u64 scale = alloc_window.scale;

	return value >> 24 ? (value >> 8) * scale : value * scale >> 8;
}

/* Is the thread at one of the sites, or right behind it, or where the kernel runs the instruction
 * from there? */
static __always_inline int alloc_turn_is_at_site(const struct alloc_turn *turn,
						 struct task_struct *task, __u64 ip)
{
	__u64 copy = BPF_CORE_READ(task, utask, xol_vaddr);

	return ip - turn->site <= ALLOC_SITE_BYTES || ip - turn->other_site <= ALLOC_SITE_BYTES ||
	       (copy && ip - copy < 16);
}

#endif
