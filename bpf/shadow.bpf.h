/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_SHADOW_BPF_H
#define BRAID_SHADOW_BPF_H

/* Shadow stacks: a copy of a runtime's call stack that its probes maintain, for runtimes or
 * versions whose frames cannot be walked, and for `braid calls`.
 *
 * Owners. A thread has one shadow stack for each runtime and each machine stack that it runs on:
 * the thread's own stack, its signal stack, and fiber stacks (SHADOW_OWNER). All are slots of one
 * array, since a lookup in a hash table would be half of the cost of a probe. A slot is claimed by
 * compare-and-swap of its owner, and released at exit and execve (shadow.bpf.c). If all
 * SHADOW_SLOTS slots near its home are in use, the call is not recorded and COUNT_SHADOW_NO_MEMORY
 * grows; the thread's next call tries again.
 *
 * Concurrency. Only the thread itself changes its shadow stack, and no probe hits inside a probe,
 * so there are no locks. A sample may interrupt a probe between any two stores: an entry is stored
 * before the depth includes it.
 *
 * Missed returns are the rule, not the exception: exceptions, longjmp, tail calls and signals leave
 * functions without a return probe. An entry has an anchor, an address in the native frame that
 * runs the call, and a `match` that identifies the runtime's frame. A new call proves older ones
 * dead in two ways (shadow__prune). One is an anchor that lies below the new call's anchor in the
 * same stack. The other is a place between the caller and the new call, if the probe names the
 * caller. At a sample, entries below the stack pointer are dead (emit_step). None of this applies
 * to frames that move while they live (SHADOW_FRAMES_MOVE). bpf/jvm_probes.bpf.c prunes their
 * entries with a tolerance. Dropped entries count as lost returns.
 *
 *   state of a stack   change
 *   free               first call of the thread: owned, and seeded
 *   owned              call: push; return: pop down to its entry; overflow: counted, not stored
 *   copied             fork: the child's copy; its first probe begins anew (SHADOW_COPIED)
 *   any of these       exit, execve: free
 *
 * Seeding. Probes that are attached to a running process see no calls from before. If the frames of
 * the runtime are readable, the first probe of a thread stores them as ENTRY_SEEDED. Otherwise the
 * outer end is missing (SHADOW_PARTIAL), and the section is SECTION_BROKEN.
 *
 * Anchors say nothing about addresses that are farther apart than STACK_SPAN: these are on
 * different stacks. */

#include "bpf/calls.bpf.h"
#include "bpf/scratch.bpf.h"
#include "bpf/shadow.h"

/* An array, because a lookup in a hash table would be half of a probe's cost. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: cfg_shadows */
	__type(key, __u32);
	__type(value, struct shadow);
} shadows __weak SEC(".maps");

extern const volatile __u32 cfg_shadows; /* a power of two */

/* Set by user space before it detaches probes, which the kernel does one after the other. From then
 * on shadow stacks and counts of calls do not change, so that all are from one moment. */
extern __u32 probes_over;

/* Addresses farther apart than this are on different stacks, and give no evidence about each
 * other. */
#define STACK_SPAN (64ULL << 20)

/* A call as reported by its entry probe. */
struct shadow_call {
	__u64 anchor, match; /* as in shadow_entry */
	__u64 parent;	     /* `match` of the caller; 0: unknown */
	__u32 code, index;
	__u32 flags;
};

/* Returns 1 if a frame at @anchor no longer exists when its stack's innermost frame is at @live. */
static __always_inline int anchor__is_below(__u64 anchor, __u64 live)
{
	return anchor && live - anchor - 1 < STACK_SPAN;
}

static __always_inline struct shadow_entry *shadow__entry(struct shadow *shadow, __u32 at)
{
	return &shadow->entries[at & (SHADOW_DEPTH_MAX - 1)];
}

/* Returns the region of @sp. The task's fields give the signal stack, as in on_sig_stack(),
 * include/linux/sched/signal.h. */
static __always_inline __u32 region__of(const struct task_struct *task, __u64 sp)
{
	return sp - task->sas_ss_sp - 1 < task->sas_ss_size ? SHADOW_OF_SIGNALS : SHADOW_OF_THREAD;
}

static __always_inline struct shadow *shadow__at(__u32 slot)
{
	slot &= cfg_shadows - 1;
	return bpf_map_lookup_elem(&shadows, &slot);
}

static __noinline struct shadow *shadow__search(__u64 owner)
{
	struct shadow *shadow;
	__u32 i;

	for (i = 1; i < SHADOW_SLOTS; i++) {
		shadow = shadow__at(SHADOW_HOME(owner) + i);
		if (shadow && shadow->owner == owner)
			return shadow;
	}
	return NULL;
}

static __always_inline struct shadow *shadow__find(__u64 owner)
{
	struct shadow *shadow = shadow__at(SHADOW_HOME(owner));

	return shadow && shadow->owner == owner ? shadow : shadow__search(owner);
}

/* Claims a slot. Returns NULL if all slots are in use now: the thread's next call tries again. */
static __noinline struct shadow *shadow__new(__u64 owner)
{
	struct shadow *shadow;
	__u32 i;

	for (i = 0; i < SHADOW_SLOTS; i++) {
		shadow = shadow__at(SHADOW_HOME(owner) + i);
		if (shadow && !shadow->owner &&
		    !__sync_val_compare_and_swap(&shadow->owner, 0, owner))
			return shadow;
	}
	count(COUNT_SHADOW_NO_MEMORY);
	return NULL;
}

static __always_inline struct shadow *shadow__get(__u64 owner)
{
	struct shadow *shadow = shadow__find(owner);

	return shadow ? shadow : shadow__new(owner);
}

/* Ends the innermost entry. */
static __always_inline void shadow__drop(struct shadow *shadow, int lost, __u64 now_ns)
{
	__u32 depth = shadow->depth - 1;

	shadow->depth = depth;
	call__leave(shadow__entry(shadow, depth), lost, now_ns);
	if (lost)
		count(COUNT_SHADOW_LOST_RETURN);
}

struct shadow_search {
	struct shadow *shadow;
	__u64 anchor, match;
	__u64 now_ns;
	__u32 flags;
	__u32 keep;  /* number of entries that remain */
	__u32 found; /* 1: @keep is the index of the requested entry */
};

static long drop_step(__u32 index, void *arg)
{
	struct shadow_search *search = arg;

	(void)index;
	if (search->shadow->depth <= search->keep)
		return 1;
	shadow__drop(search->shadow, 1, search->now_ns);
	return 0;
}

/* Ends all entries from index @keep on, whose returns were not seen. */
static __always_inline void drop_to(struct shadow_search *search)
{
	if (search->shadow->depth > search->keep)
		bpf_loop(SHADOW_DEPTH_MAX, drop_step, search, 0);
}

static __always_inline int is_replaced(const struct shadow_entry *entry, __u64 anchor, __u32 flags)
{
	return anchor__is_below(entry->anchor, anchor) ||
	       (flags & ENTRY_OWN_ANCHOR && entry->anchor == anchor);
}

static long find_replaced(__u32 index, void *arg)
{
	struct shadow_search *search = arg;
	const struct shadow_entry *entry;

	(void)index;
	if (!search->keep)
		return 1;
	entry = shadow__entry(search->shadow, search->keep - 1);
	if (!is_replaced(entry, search->anchor, search->flags))
		return 1;
	search->keep--;
	return 0;
}

static long find_parent(__u32 index, void *arg)
{
	struct shadow_search *search = arg;
	__u32 at = search->shadow->depth - 1 - index;

	if (index >= search->shadow->depth)
		return 1;
	if (shadow__entry(search->shadow, at)->match != search->match)
		return 0;
	search->keep = at + 1;
	return 1;
}

/* Ends the entries that a new call proves to be dead: deeper ones in the same stack, and those
 * between the new call and its caller. */
__weak __noinline int shadow__prune(struct shadow *shadow, const struct shadow_call *call)
{
	struct shadow_search search = { .shadow = shadow };

	if (!shadow || !call)
		return 0;
	search.anchor = call->anchor;
	search.match = call->parent;
	search.flags = call->flags;
	search.keep = shadow->depth;
	if (cfg_calls)
		search.now_ns = bpf_ktime_get_ns();
	bpf_loop(SHADOW_DEPTH_MAX, find_replaced, &search, 0);
	if (search.keep < shadow->depth)
		shadow->overflow = 0;
	drop_to(&search);
	if (call->parent && !shadow->overflow) {
		bpf_loop(SHADOW_DEPTH_MAX, find_parent, &search, 0);
		drop_to(&search);
	}
	return 0;
}

/* Adds a call by the innermost one. */
static __always_inline void shadow__add(struct shadow *shadow, const struct shadow_call *call)
{
	__u32 depth = shadow->depth, parent = 0, node = 0;
	struct shadow_entry *entry;
	__u64 now_ns = 0;

	if (cfg_calls) {
		if (depth)
			parent = shadow__entry(shadow, depth - 1)->node;
		node = call__enter(shadow, parent, call->code);
		now_ns = bpf_ktime_get_ns();
	}
	if (depth >= SHADOW_DEPTH_MAX) {
		shadow->overflow++;
		return;
	}
	entry = shadow__entry(shadow, depth);
	entry->code = call->code;
	entry->index = call->index;
	entry->anchor = call->anchor;
	entry->match = call->match;
	entry->entered_ns = now_ns;
	entry->node = node;
	entry->flags = call->flags;
	barrier(); /* a sample of this thread, on this CPU, sees a complete entry or none */
	shadow->depth = depth + 1;
}

static __always_inline void shadow__push(struct shadow *shadow, const struct shadow_call *call)
{
	const struct shadow_entry *last;

	if (shadow->depth) {
		last = shadow__entry(shadow, shadow->depth - 1);
		if (is_replaced(last, call->anchor, call->flags) ||
		    (call->parent && last->match != call->parent && !shadow->overflow))
			shadow__prune(shadow, call);
	}
	shadow__add(shadow, call);
}

/* Finds the innermost entry that matches the return, or the first that may still be live. */
static long find_returned(__u32 index, void *arg)
{
	struct shadow_search *search = arg;
	const struct shadow_entry *entry;
	__u32 at = search->shadow->depth - 1 - index;

	if (index >= search->shadow->depth)
		return 1;
	entry = shadow__entry(search->shadow, at);
	if (anchor__is_below(entry->anchor, search->anchor)) {
		search->keep = at;
		return 0;
	}
	if (entry->anchor && entry->anchor != search->anchor)
		return 1;
	if (entry->match != search->match && (search->match || !entry->anchor))
		return 0;
	search->keep = at;
	search->found = 1;
	return 1;
}

/* Handles a return that does not match the innermost entry. */
__weak __noinline int shadow__repair(struct shadow *shadow, __u64 anchor, __u64 match)
{
	struct shadow_search search = { .shadow = shadow, .anchor = anchor, .match = match };
	const struct shadow_entry *last;

	if (!shadow)
		return 0;
	last = shadow__entry(shadow, SHADOW_DEPTH_MAX - 1);
	if (shadow->overflow) {
		if (!is_replaced(last, anchor, last->flags)) {
			shadow->overflow--;
			return 0;
		}
		shadow->overflow = 0;
	}
	search.keep = shadow->depth;
	if (cfg_calls)
		search.now_ns = bpf_ktime_get_ns();
	bpf_loop(SHADOW_DEPTH_MAX, find_returned, &search, 0);
	search.keep += search.found;
	drop_to(&search);
	if (search.found && shadow->depth)
		shadow__drop(shadow, 0, search.now_ns);
	else
		count(COUNT_SHADOW_UNMATCHED);
	return 0;
}

/* Removes the call with this anchor when it returns. @match 0: the probe does not report it. */
static __always_inline void shadow__pop(struct shadow *shadow, __u64 anchor, __u64 match)
{
	const struct shadow_entry *entry;

	if (shadow->depth && !shadow->overflow) {
		entry = shadow__entry(shadow, shadow->depth - 1);
		if (entry->anchor == anchor && (!match || entry->match == match)) {
			shadow__drop(shadow, 0, cfg_calls ? bpf_ktime_get_ns() : 0);
			return;
		}
	}
	shadow__repair(shadow, anchor, match);
}

static long seed_node(__u32 index, void *arg)
{
	struct shadow_search *search = arg;
	struct shadow_entry *entry;
	__u32 parent = 0;

	if (index >= search->keep)
		return 1;
	if (index)
		parent = shadow__entry(search->shadow, index - 1)->node;
	entry = shadow__entry(search->shadow, index);
	entry->node = call__node(search->shadow, parent, entry->code);
	return 0;
}

/* Publishes the lowest @n entries after they are filled in: calls from before the probes. */
static __always_inline void shadow__publish(struct shadow *shadow, __u32 n)
{
	struct shadow_search search = { .shadow = shadow, .keep = n };

	if (n > SHADOW_DEPTH_MAX) {
		shadow->overflow = n - SHADOW_DEPTH_MAX;
		search.keep = SHADOW_DEPTH_MAX;
	}
	if (cfg_calls)
		bpf_loop(SHADOW_DEPTH_MAX, seed_node, &search, 0);
	barrier();
	shadow->depth = search.keep;
}

/* --- ends without a return --- */

static long end_entry(__u32 index, void *arg)
{
	struct shadow_search *search = arg;

	if (index >= search->shadow->depth)
		return 1;
	call__leave(shadow__entry(search->shadow, index), 1, search->now_ns);
	return 0;
}

/* Ends all calls of a shadow stack. */
__weak __noinline int shadow__end(struct shadow *shadow)
{
	struct shadow_search search = { .shadow = shadow };

	if (!shadow)
		return 0;
	if (cfg_calls) {
		search.now_ns = bpf_ktime_get_ns();
		bpf_loop(SHADOW_DEPTH_MAX, end_entry, &search, 0);
	}
	shadow->depth = shadow->overflow = 0;
	return 0;
}

static long find_unwound(__u32 index, void *arg)
{
	struct shadow_search *search = arg;
	const struct shadow_entry *entry;
	__u32 at = search->shadow->depth - 1 - index;

	if (index >= search->shadow->depth)
		return 1;
	entry = shadow__entry(search->shadow, at);
	if (entry->flags & ENTRY_OWN_ANCHOR && entry->match == search->match) {
		search->keep = at;
		search->found = 1;
		return 1;
	}
	return !(entry->flags & ENTRY_OWN_ANCHOR) &&
	       !anchor__is_below(entry->anchor, search->anchor);
}

/* Ends the innermost call with an anchor of its own, by an exception. The probe's position gives no
 * evidence about that call. But calls of other kinds whose anchors are not below it are outside of
 * it. */
__weak __noinline int shadow__unwind(struct shadow *shadow, __u64 sp, __u64 match)
{
	struct shadow_search search = { .shadow = shadow, .anchor = sp, .match = match };

	if (!shadow)
		return 0;
	if (shadow->overflow) {
		shadow->overflow--;
		return 0;
	}
	bpf_loop(SHADOW_DEPTH_MAX, find_unwound, &search, 0);
	if (!search.found) {
		count(COUNT_SHADOW_UNMATCHED);
		return 0;
	}
	if (cfg_calls)
		search.now_ns = bpf_ktime_get_ns();
	search.keep++;
	drop_to(&search);
	if (shadow->depth)
		shadow__drop(shadow, 0, search.now_ns);
	return 0;
}

#endif
