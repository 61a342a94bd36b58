// SPDX-License-Identifier: GPL-2.0
#include "bpf/fiber_stacks.bpf.h"

/* Shadow stacks: sampling them, and their changes at fork, exec and exit of threads. */

const volatile __u32 cfg_shadows = 1;
const volatile __u32 cfg_calls = 0;
const volatile __u32 cfg_nodes = 0;

__u32 call_nodes_used = 0;
__u32 probes_over = 0;

/* --- samples --- */

struct emission {
	struct shadow *shadow;
	struct scratch *scratch;
	__u64 sp; /* entries below are dead; 0: unknown */
};

/* Returns the current index (line or bytecode index) from the runtime's frame, or the index that
 * the probe reported. */
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
	return 0;
}

/* Adds the frames of @shadow to the sample, except frames below @sp, which are dead. Returns the
 * flags of their section. */
static __always_inline __u32 emit(struct scratch *scratch, struct shadow *shadow, __u64 sp)
{
	struct emission emission = { .shadow = shadow, .scratch = scratch, .sp = sp };
	__u32 flags = 0;

	if (shadow->overflow)
		flags |= SECTION_TRUNCATED;
	if (shadow->flags & SHADOW_PARTIAL)
		flags |= SECTION_BROKEN;
	bpf_loop(SHADOW_DEPTH_MAX, emit_step, &emission, 0);
	return flags;
}

struct fiber_nearest {
	struct shadow *head, *found;
	__u64 sp, distance;
};

static long near_step(__u32 index, void *arg)
{
	struct fiber_nearest *nearest = arg;
	struct shadow *shadow;
	__u64 distance;

	if (!fiber__is_used(nearest->head, index))
		return 0;
	shadow = shadow__find(fiber__owner(nearest->head, index));
	if (!shadow || !shadow->depth)
		return 0;
	distance = shadow->entries[0].anchor - nearest->sp;
	if (distance < nearest->distance) {
		nearest->distance = distance;
		nearest->found = shadow;
	}
	return 0;
}

/* Returns the address where the outermost native frame ends; 0: it was not found. */
static __always_inline __u64 stack_end(const struct scratch *scratch)
{
	__u32 at = scratch->sample.n_kernel + 2 * scratch->sample.n_native - 1;

	if (!(scratch->sample.flags & SAMPLE_COMPLETE) || !scratch->sample.n_native)
		return 0;
	return scratch->words[at & (SAMPLE_WORDS_MAX - 1)];
}

/* Returns the shadow stack for the stack that the thread is on, or NULL. If the thread has changed
 * its stack since the last probe hit, this is not its current fiber stack. Stacks do not overlap.
 * So the right one is the fiber stack whose outermost call is nearest above @sp, and not beyond the
 * end of the stack. */
static __always_inline struct shadow *fiber__sampled(struct shadow *head, struct scratch *scratch,
						     __u64 sp)
{
	struct fiber_nearest nearest = { .head = head, .sp = sp, .distance = STACK_SPAN };
	__u64 end = stack_end(scratch);

	if (!(head->fibers_used & ~1U))
		return head;
	if (fiber__has(head, sp))
		return fiber__current(head);
	bpf_loop(SHADOW_FIBERS_MAX, near_step, &nearest, 0);
	return end && nearest.distance > end - sp ? NULL : nearest.found;
}

/* Adds the frames from the probes of one runtime in the thread. Returns 1 if the thread has a
 * shadow stack. */
static __noinline int walk_runtime(struct scratch *scratch, __u32 runtime)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 sp = scratch->interrupted[UNWIND_REG_RSP];
	__u32 first_word = scratch->n_words, flags = SECTION_PROBED, tid = task->pid, found = 0;
	struct shadow *shadow;

	if (region__of(task, sp) == SHADOW_OF_SIGNALS) {
		shadow = shadow__find(SHADOW_OWNER(tid, runtime, SHADOW_OF_SIGNALS));
		if (shadow)
			flags |= emit(scratch, shadow, sp);
		sp = 0; /* the interrupted code's stack pointer is unknown */
	}
	shadow = shadow__find(SHADOW_OWNER(tid, runtime, SHADOW_OF_THREAD));
	if (shadow)
		shadow = sp ? fiber__sampled(shadow, scratch, sp) : fiber__current(shadow);
	if (shadow) {
		flags |= emit(scratch, shadow, sp);
		found = 1;
	}
	scratch__section(scratch, runtime, first_word, flags);
	return found;
}

SEC("?perf_event")
int walk_shadow(void *ctx)
{
	struct scratch *scratch = scratch__get();
	__u32 runtime, found = 0;

	if (!scratch) {
		scratch__abandon();
		return 0;
	}
	for (runtime = 0; runtime < WALKERS_PROBED; runtime++)
		found |= walk_runtime(scratch, runtime);
	if (!found) /* the thread may be in calls from before the probes */
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

/* Copies a shadow stack; returns NULL on failure. */
static __noinline struct shadow *copy(__u64 from, __u64 to)
{
	struct copying copying = { .from = shadow__find(from) };
	struct shadow *shadow;

	if (!copying.from)
		return NULL;
	shadow = shadow__get(to);
	if (!shadow)
		return NULL;
	copying.to = shadow;
	copying.now_ns = bpf_ktime_get_ns();
	bpf_loop(SHADOW_DEPTH_MAX, copy_step, &copying, 0);
	shadow->flags = copying.from->flags | SHADOW_COPIED;
	shadow->space = 0; /* the caches are not for this address space */
	shadow->index_offset = copying.from->index_offset;
	shadow->index_shift = copying.from->index_shift;
	shadow->overflow = copying.from->overflow;
	shadow->depth = copying.from->depth;
	return shadow;
}

/* Copies the fiber stacks for the child's thread. Its first probe starts anew in any case. */
struct fibers_copying {
	const struct shadow *from;
	struct shadow *to;
};

static long copy_fiber(__u32 index, void *arg)
{
	struct fibers_copying *copying = arg;
	__u32 fiber = index & (SHADOW_FIBERS_MAX - 1);

	if (!fiber__is_used(copying->from, fiber))
		return 0;
	if (fiber && !copy(fiber__owner(copying->from, fiber), fiber__owner(copying->to, fiber)))
		return 0;
	copying->to->fibers[fiber] = copying->from->fibers[fiber];
	copying->to->fibers_used |= 1U << fiber;
	return 0;
}

static __noinline int copy_thread(__u32 from, __u32 to, __u32 runtime)
{
	__u64 from_owner = SHADOW_OWNER(from, runtime, SHADOW_OF_THREAD);
	struct fibers_copying copying = { .from = shadow__find(from_owner) };

	copy(SHADOW_OWNER(from, runtime, SHADOW_OF_SIGNALS),
	     SHADOW_OWNER(to, runtime, SHADOW_OF_SIGNALS));
	if (!copying.from)
		return 0;
	copying.to = copy(from_owner, SHADOW_OWNER(to, runtime, SHADOW_OF_THREAD));
	if (!copying.to)
		return 0;
	bpf_loop(SHADOW_FIBERS_MAX, copy_fiber, &copying, 0);
	copying.to->fiber = copying.from->fiber;
	copying.to->lo = copying.from->lo;
	copying.to->hi = copying.from->hi;
	copying.to->switches = copying.from->switches;
	return 0;
}

static __noinline int forget(__u64 owner)
{
	struct shadow *shadow = shadow__find(owner);

	if (!shadow)
		return 0;
	shadow__end(shadow);
	shadow->flags = shadow->fiber = shadow->fibers_used = 0;
	shadow->lo = shadow->hi = 0;
	barrier();
	shadow->owner = 0;
	return 0;
}

static long forget_fiber(__u32 index, void *arg)
{
	const struct shadow *head = *(struct shadow **)arg;

	if (index && fiber__is_used(head, index))
		forget(fiber__owner(head, index));
	return 0;
}

static __noinline int forget_runtime(__u32 tid, __u32 runtime)
{
	struct shadow *head = shadow__find(SHADOW_OWNER(tid, runtime, SHADOW_OF_THREAD));

	if (head && head->fibers_used & ~1U)
		bpf_loop(SHADOW_FIBERS_MAX, forget_fiber, &head, 0);
	forget(SHADOW_OWNER(tid, runtime, SHADOW_OF_THREAD));
	forget(SHADOW_OWNER(tid, runtime, SHADOW_OF_SIGNALS));
	return 0;
}

static __always_inline void forget_thread(__u32 tid)
{
	__u32 runtime;

	for (runtime = 0; runtime < WALKERS_PROBED; runtime++)
		forget_runtime(tid, runtime);
}

SEC("?tp_btf/sched_process_fork")
int BPF_PROG(shadow_on_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 runtime;

	if (child->tgid == parent->tgid)
		return 0; /* a thread starts without a shadow stack */
	for (runtime = 0; runtime < WALKERS_PROBED; runtime++)
		copy_thread(parent->pid, child->pid, runtime);
	return 0;
}

SEC("?tp_btf/sched_process_exec")
int BPF_PROG(shadow_on_exec, struct task_struct *task, int old_tid, struct linux_binprm *bprm)
{
	(void)bprm;
	if (probes_over)
		return 0;
	forget_thread(old_tid);
	forget_thread(task->pid);
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int BPF_PROG(shadow_on_exit, struct task_struct *task)
{
	if (!probes_over)
		forget_thread(task->pid);
	return 0;
}
