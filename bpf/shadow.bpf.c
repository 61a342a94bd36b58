// SPDX-License-Identifier: GPL-2.0
#include "bpf/lanes.bpf.h"

/* Shadow stacks at samples, and through the life of threads. */

const volatile __u32 cfg_shadows = 1;
const volatile __u32 cfg_calls = 0;
const volatile __u32 cfg_nodes = 0;

__u32 call_nodes_used = 0;

/* --- samples --- */

struct emission {
	struct shadow *shadow;
	struct scratch *scratch;
	__u64 sp; /* entries below are dead; 0: unknown */
	__u32 n;
};

/* What the runtime's frame says now, or what the probe said. */
static __always_inline __u32 current_index(const struct shadow *shadow,
					   const struct shadow_entry *entry)
{
	__u32 index;

	if (!(entry->flags & ENTRY_LIVE_INDEX) ||
	    bpf_probe_read_user(&index, sizeof(index),
				(void *)(entry->match + shadow->index_offset)))
		return entry->index;
	return index << (shadow->index_shift & 31);
}

static long emit_step(__u32 index, void *arg)
{
	struct emission *emission = arg;
	struct shadow *shadow = emission->shadow;
	const struct shadow_entry *entry;

	if (index >= shadow->depth)
		return 1;
	entry = shadow__entry(shadow, shadow->depth - 1 - index);
	if (emission->sp && !(shadow->flags & SHADOW_FRAMES_MOVE) &&
	    anchor__is_below(entry->anchor, emission->sp))
		return 0;
	scratch__push(emission->scratch, FRAME_KEY(entry->code, current_index(shadow, entry)),
		      entry->anchor);
	emission->n++;
	return 0;
}

static __always_inline void emit(struct scratch *scratch, struct shadow *shadow, __u64 sp)
{
	struct emission emission = { .shadow = shadow, .scratch = scratch, .sp = sp };
	struct rec_sample *sample = &scratch->sample;

	if (shadow->overflow) {
		sample->flags |= SAMPLE_RUNTIME_TRUNCATED;
		count(COUNT_WALK_TRUNCATED);
	}
	if (shadow->flags & SHADOW_PARTIAL)
		sample->flags |= SAMPLE_RUNTIME_BROKEN;
	sample->walker = shadow->runtime;
	bpf_loop(SHADOW_DEPTH_MAX, emit_step, &emission, 0);
	sample->n_runtime += emission.n;
}

struct lane_nearest {
	struct shadow *head, *found;
	__u64 sp, distance;
};

static long near_step(__u32 index, void *arg)
{
	struct lane_nearest *nearest = arg;
	struct shadow *shadow;
	__u64 distance;

	if (!lane__is_used(nearest->head, index))
		return 0;
	shadow = shadow__find(lane__owner(nearest->head, index));
	if (!shadow || !shadow->depth)
		return 0;
	distance = shadow->entries[0].anchor - nearest->sp;
	if (distance < nearest->distance) {
		nearest->distance = distance;
		nearest->found = shadow;
	}
	return 0;
}

/* Of the address that the outermost native frame ends at; 0: it was not found. */
static __always_inline __u64 stack_end(const struct scratch *scratch)
{
	__u32 at = scratch->sample.n_kernel + 2 * scratch->sample.n_native - 1;

	if (!(scratch->sample.flags & SAMPLE_COMPLETE) || !scratch->sample.n_native)
		return 0;
	return scratch->words[at & (SAMPLE_WORDS_MAX - 1)];
}

/* The shadow stack of the stack that the thread is on; NULL: it has none. Another lane than the
 * current one if no probe has hit since the thread changed: stacks do not overlap, so it is the one
 * whose outermost call is nearest above the stack pointer, if it is not beyond the stack's end. */
static __always_inline struct shadow *lane__sampled(struct shadow *head, struct scratch *scratch,
						    __u64 sp)
{
	struct lane_nearest nearest = { .head = head, .sp = sp, .distance = STACK_SPAN };
	__u64 end = stack_end(scratch);

	if (!(head->lanes_used & ~1U))
		return head;
	if (lane__has(head, sp))
		return lane__current(head);
	bpf_loop(SHADOW_LANES, near_step, &nearest, 0);
	return end && nearest.distance > end - sp ? NULL : nearest.found;
}

SEC("?perf_event")
int walk_shadow(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *scratch = scratch__get();
	__u32 tid = task->pid;
	struct shadow *shadow;
	__u64 sp;

	if (!scratch) {
		count(COUNT_SCRATCH);
		return 0;
	}
	sp = scratch->interrupted[UNWIND_REG_RSP];
	if (region__of(task, sp) == SHADOW_OF_SIGNALS) {
		shadow = shadow__find(SHADOW_OWNER(tid, SHADOW_OF_SIGNALS));
		if (shadow)
			emit(scratch, shadow, sp);
		sp = 0; /* of what the signal interrupted */
	}
	shadow = shadow__find(SHADOW_OWNER(tid, SHADOW_OF_THREAD));
	if (shadow)
		shadow = sp ? lane__sampled(shadow, scratch, sp) : lane__current(shadow);
	if (shadow)
		emit(scratch, shadow, sp);
	else /* it may be in calls from before the probes */
		scratch->sample.flags |= SAMPLE_RUNTIME_BROKEN;
	scratch__next(ctx, scratch);
	return 0;
}

/* --- fork, exec, exit --- */

struct copying {
	const struct shadow *from;
	struct shadow *to;
	__u64 now_ns;
};

static long copy_step(__u32 index, void *arg)
{
	struct copying *copying = arg;
	struct shadow_entry *entry;

	if (index >= copying->from->depth)
		return 1;
	entry = shadow__entry(copying->to, index);
	*entry = copying->from->entries[index & (SHADOW_DEPTH_MAX - 1)];
	entry->flags |= ENTRY_SEEDED;
	entry->entered_ns = copying->now_ns;
	return 0;
}

/* Returns the copy, or NULL. */
static __noinline struct shadow *copy(__u32 region, __u32 from, __u32 to)
{
	struct copying copying = { .from = shadow__find(SHADOW_OWNER(from, region)) };
	struct shadow *shadow;

	if (!copying.from)
		return NULL;
	shadow = shadow__get(SHADOW_OWNER(to, region));
	if (!shadow)
		return NULL;
	copying.to = shadow;
	copying.now_ns = bpf_ktime_get_ns();
	bpf_loop(SHADOW_DEPTH_MAX, copy_step, &copying, 0);
	shadow->flags = copying.from->flags | SHADOW_COPIED;
	shadow->runtime = copying.from->runtime;
	shadow->space = 0; /* the memos are not of it */
	shadow->index_offset = copying.from->index_offset;
	shadow->index_shift = copying.from->index_shift;
	shadow->overflow = copying.from->overflow;
	shadow->depth = copying.from->depth;
	return shadow;
}

/* The child's thread has those lanes; its first probe begins anew anyway. */
struct lanes_copying {
	const struct shadow *from;
	struct shadow *to;
};

static long copy_lane(__u32 index, void *arg)
{
	struct lanes_copying *copying = arg;
	__u32 lane = index & (SHADOW_LANES - 1);

	if (!lane__is_used(copying->from, lane))
		return 0;
	if (lane && !copy(SHADOW_OF_LANE(lane), OWNER_TID(copying->from->owner),
			  OWNER_TID(copying->to->owner)))
		return 0;
	copying->to->lanes[lane] = copying->from->lanes[lane];
	copying->to->lanes_used |= 1U << lane;
	return 0;
}

static __always_inline void copy_thread(__u32 from, __u32 to)
{
	struct lanes_copying copying = { .from = shadow__find(
						 SHADOW_OWNER(from, SHADOW_OF_THREAD)) };

	if (!copying.from)
		return;
	copying.to = copy(SHADOW_OF_THREAD, from, to);
	if (!copying.to)
		return;
	bpf_loop(SHADOW_LANES, copy_lane, &copying, 0);
	copying.to->lane = copying.from->lane;
	copying.to->lo = copying.from->lo;
	copying.to->hi = copying.from->hi;
	copying.to->switches = copying.from->switches;
}

static __noinline int forget(__u32 region, __u32 tid)
{
	struct shadow *shadow = shadow__find(SHADOW_OWNER(tid, region));

	if (!shadow)
		return 0;
	shadow__end(shadow);
	shadow->flags = shadow->lane = shadow->lanes_used = 0;
	shadow->lo = shadow->hi = 0;
	barrier();
	shadow->owner = 0;
	return 0;
}

static long forget_lane(__u32 index, void *arg)
{
	const struct shadow *head = *(struct shadow **)arg;

	if (index && lane__is_used(head, index))
		forget(SHADOW_OF_LANE(index), OWNER_TID(head->owner));
	return 0;
}

static __noinline int forget_thread(__u32 tid)
{
	struct shadow *head = shadow__find(SHADOW_OWNER(tid, SHADOW_OF_THREAD));

	if (head && head->lanes_used & ~1U)
		bpf_loop(SHADOW_LANES, forget_lane, &head, 0);
	forget(SHADOW_OF_THREAD, tid);
	forget(SHADOW_OF_SIGNALS, tid);
	return 0;
}

SEC("?tp_btf/sched_process_fork")
int BPF_PROG(shadow_on_fork, struct task_struct *parent, struct task_struct *child)
{
	if (child->tgid == parent->tgid)
		return 0; /* a thread begins with nothing */
	copy_thread(parent->pid, child->pid);
	copy(SHADOW_OF_SIGNALS, parent->pid, child->pid);
	return 0;
}

SEC("?tp_btf/sched_process_exec")
int BPF_PROG(shadow_on_exec, struct task_struct *task, int old_tid, struct linux_binprm *bprm)
{
	(void)bprm;
	forget_thread(old_tid);
	forget_thread(task->pid);
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int BPF_PROG(shadow_on_exit, struct task_struct *task)
{
	forget_thread(task->pid);
	return 0;
}
