/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_FIBER_STACKS_BPF_H
#define BRAID_FIBER_STACKS_BPF_H

/* Threads that switch between stacks themselves. Each stack has a shadow stack of its own, a fiber
 * stack. While the stack pointer is within the current stack's proven range, no query is needed.
 * Otherwise the runtime provides the current stack. At a switch, a fiber stack without calls is
 * released, because its fiber has ended. If there are too many, the least recently used one is
 * released. */

#include "bpf/cache.bpf.h"

#define FIBER_PAGE 4096ULL
#define FIBER_NONE SHADOW_FIBERS_MAX

/* The current stack of a thread, from its runtime. */
struct fiber_place {
	__u64 stack, state; /* as in shadow_fiber */
	__u64 frames;	    /* upper limit of the number of open calls there */
	__u64 sp;
};

static __always_inline struct shadow_fiber *fiber__at(struct shadow *head, __u32 fiber)
{
	return &head->fibers[fiber & (SHADOW_FIBERS_MAX - 1)];
}

static __always_inline int fiber__is_used(const struct shadow *head, __u32 fiber)
{
	return head->fibers_used >> (fiber & (SHADOW_FIBERS_MAX - 1)) & 1;
}

static __always_inline __u64 fiber__owner(const struct shadow *head, __u32 fiber)
{
	return SHADOW_OWNER(SHADOW_TID(head->owner), SHADOW_RUNTIME(head->owner),
			    SHADOW_OF_FIBER(fiber));
}

/* Returns 1 if the stack pointer is proven to be on the current fiber stack's stack. @head: the
 * thread's own shadow stack. */
static __always_inline int fiber__has(const struct shadow *head, __u64 sp)
{
	return sp - head->lo < head->hi - head->lo;
}

/* Returns the shadow stack in use, or NULL if there is no space. */
static __noinline struct shadow *fiber__further(struct shadow *head)
{
	return shadow__find(fiber__owner(head, head->fiber));
}

static __always_inline struct shadow *fiber__current(struct shadow *head)
{
	return head->fiber ? fiber__further(head) : head;
}

struct fiber_search {
	struct shadow *head;
	__u64 stack;
	__u64 oldest_used;
	__u32 found, oldest, unused;
};

static long find_fiber(__u32 index, void *arg)
{
	struct fiber_search *search = arg;
	const struct shadow_fiber *fiber = fiber__at(search->head, index);

	if (!fiber__is_used(search->head, index)) {
		if (search->unused == FIBER_NONE)
			search->unused = index;
		return 0;
	}
	if (fiber->stack == search->stack) {
		search->found = index;
		return 1;
	}
	/* Fiber stack 0 is never released, because the others are found through it. */
	if (index && (search->oldest == FIBER_NONE || fiber->used < search->oldest_used)) {
		search->oldest = index;
		search->oldest_used = fiber->used;
	}
	return 0;
}

static __always_inline void fiber__free(struct shadow *head, struct shadow *shadow, __u32 fiber)
{
	head->fibers_used &= ~(1U << (fiber & (SHADOW_FIBERS_MAX - 1)));
	shadow->flags = 0;
	barrier();
	shadow->owner = 0;
}

/* Returns the fiber stack for a new stack, or FIBER_NONE if there is no space. */
static __noinline __u32 fiber__new(struct shadow *head, __u32 unused, __u32 oldest)
{
	struct shadow *shadow = NULL;

	if (!head)
		return FIBER_NONE;
	if (unused == 0)
		return 0;
	if (unused < SHADOW_FIBERS_MAX)
		shadow = shadow__get(fiber__owner(head, unused));
	if (shadow) {
		shadow__begin(shadow, head->space);
		return unused;
	}
	if (oldest >= SHADOW_FIBERS_MAX)
		return FIBER_NONE;
	shadow = shadow__find(fiber__owner(head, oldest));
	if (!shadow)
		return FIBER_NONE;
	shadow__end(shadow);
	return oldest;
}

/* Leaves the current fiber stack, and releases it if it has no calls. */
static __noinline int fiber__leave(struct shadow *head)
{
	struct shadow *shadow;

	if (!head || !head->fiber)
		return 0;
	shadow = fiber__further(head);
	if (shadow && !shadow->depth && !shadow->overflow)
		fiber__free(head, shadow, head->fiber);
	return 0;
}

static __always_inline void fiber__extend(struct shadow *head, struct shadow_fiber *fiber, __u64 sp)
{
	/* Stacks share no pages. */
	if (sp < fiber->lo)
		fiber->lo = sp & ~(FIBER_PAGE - 1);
	if (sp >= fiber->hi)
		fiber->hi = (sp | (FIBER_PAGE - 1)) + 1;
	head->lo = fiber->lo;
	head->hi = fiber->hi;
}

/* Moves the thread to the stack @place. Returns 1 if the code there has begun since the thread's
 * last visit, else 0. Returns -1 without space for another fiber stack. */
__weak __noinline int fiber__change(struct shadow *head, const struct fiber_place *place)
{
	struct fiber_search search = { .head = head };
	struct shadow_fiber *fiber;
	struct shadow *shadow;
	int is_new = 0;
	__u32 index;

	if (!head || !place)
		return -1;
	search.stack = place->stack;
	search.found = search.oldest = search.unused = FIBER_NONE;
	bpf_loop(SHADOW_FIBERS_MAX, find_fiber, &search, 0);
	index = search.found;
	if (index != head->fiber)
		fiber__leave(head);
	if (index == FIBER_NONE) {
		index = fiber__new(head, search.unused, search.oldest);
		if (index >= SHADOW_FIBERS_MAX) {
			head->lo = head->hi = 0; /* query again next time */
			return -1;
		}
		is_new = 1;
		fiber = fiber__at(head, index);
		fiber->stack = place->stack;
		fiber->lo = fiber->hi = place->sp & ~(FIBER_PAGE - 1);
		head->fibers_used |= 1U << (index & (SHADOW_FIBERS_MAX - 1));
	}
	fiber = fiber__at(head, index);
	fiber->used = ++head->switches;
	head->fiber = index;
	fiber__extend(head, fiber, place->sp);
	shadow = fiber__current(head);
	if (!shadow)
		return -1;
	if (!is_new &&
	    (fiber->state != place->state || shadow->depth + shadow->overflow > place->frames)) {
		shadow__end(shadow);
		is_new = 1;
	}
	fiber->state = place->state;
	return is_new;
}

#endif
