/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_LANES_BPF_H
#define BRAID_LANES_BPF_H

/* Threads that switch between stacks by themselves: a shadow stack for each, its lane. As long as
 * the stack pointer is where the current lane's stack is known to be nothing has to be asked. Else
 * the runtime tells where the thread is. Lanes without calls, of fibers that have ended, are given
 * up with the next switch, and of too many the one that was not used for longest. */

#include "bpf/memo.bpf.h"

#define LANE_PAGE	 4096ULL
#define LANE_NONE	 SHADOW_LANES
#define OWNER_TID(owner) ((__u32)(owner))

/* Where a thread is now, as its runtime has it. */
struct lane_place {
	__u64 stack, state; /* as in shadow_lane */
	__u64 frames;	    /* no more calls than so many can be under way there */
	__u64 sp;
};

static __always_inline struct shadow_lane *lane__at(struct shadow *head, __u32 lane)
{
	return &head->lanes[lane & (SHADOW_LANES - 1)];
}

static __always_inline int lane__is_used(const struct shadow *head, __u32 lane)
{
	return head->lanes_used >> (lane & (SHADOW_LANES - 1)) & 1;
}

static __always_inline __u64 lane__owner(const struct shadow *head, __u32 lane)
{
	return SHADOW_OWNER(OWNER_TID(head->owner), SHADOW_OF_LANE(lane));
}

/* Is the stack pointer surely on the current lane's stack? `head`: the thread's own. */
static __always_inline int lane__has(const struct shadow *head, __u64 sp)
{
	return sp - head->lo < head->hi - head->lo;
}

/* The shadow stack in use; NULL: there is no room. */
static __noinline struct shadow *lane__further(struct shadow *head)
{
	return shadow__find(lane__owner(head, head->lane));
}

static __always_inline struct shadow *lane__current(struct shadow *head)
{
	return head->lane ? lane__further(head) : head;
}

struct lane_search {
	struct shadow *head;
	__u64 stack;
	__u64 oldest_used;
	__u32 found, oldest, unused;
};

static long find_lane(__u32 index, void *arg)
{
	struct lane_search *search = arg;
	const struct shadow_lane *lane = lane__at(search->head, index);

	if (!lane__is_used(search->head, index)) {
		if (search->unused == LANE_NONE)
			search->unused = index;
		return 0;
	}
	if (lane->stack == search->stack) {
		search->found = index;
		return 1;
	}
	/* Lane 0 is never given up: the others are found through it. */
	if (index && (search->oldest == LANE_NONE || lane->used < search->oldest_used)) {
		search->oldest = index;
		search->oldest_used = lane->used;
	}
	return 0;
}

static __always_inline void lane__free(struct shadow *head, struct shadow *shadow, __u32 lane)
{
	head->lanes_used &= ~(1U << (lane & (SHADOW_LANES - 1)));
	shadow->flags = 0;
	barrier();
	shadow->owner = 0;
}

/* The lane for a new stack; LANE_NONE: there is no room. */
static __noinline __u32 lane__new(struct shadow *head, __u32 unused, __u32 oldest)
{
	struct shadow *shadow = NULL;

	if (!head)
		return LANE_NONE;
	if (unused == 0)
		return 0;
	if (unused < SHADOW_LANES)
		shadow = shadow__get(lane__owner(head, unused));
	if (shadow) {
		shadow__begin(shadow, head->runtime, head->space);
		return unused;
	}
	if (oldest >= SHADOW_LANES)
		return LANE_NONE;
	shadow = shadow__find(lane__owner(head, oldest));
	if (!shadow)
		return LANE_NONE;
	shadow__end(shadow);
	return oldest;
}

/* Of a lane that is left. */
static __noinline int lane__leave(struct shadow *head)
{
	struct shadow *shadow;

	if (!head || !head->lane)
		return 0;
	shadow = lane__further(head);
	if (shadow && !shadow->depth && !shadow->overflow)
		lane__free(head, shadow, head->lane);
	return 0;
}

static __always_inline void lane__extend(struct shadow *head, struct shadow_lane *lane, __u64 sp)
{
	/* No two stacks share a page. */
	if (sp < lane->lo)
		lane->lo = sp & ~(LANE_PAGE - 1);
	if (sp >= lane->hi)
		lane->hi = (sp | (LANE_PAGE - 1)) + 1;
	head->lo = lane->lo;
	head->hi = lane->hi;
}

/* The thread is in `place`. Returns 1 if what runs there has begun since it was there last, 0 if
 * not, and -1 if there is no room for another lane. */
__weak __noinline int lane__change(struct shadow *head, const struct lane_place *place)
{
	struct lane_search search = { .head = head };
	struct shadow_lane *lane;
	struct shadow *shadow;
	int is_new = 0;
	__u32 index;

	if (!head || !place)
		return -1;
	search.stack = place->stack;
	search.found = search.oldest = search.unused = LANE_NONE;
	bpf_loop(SHADOW_LANES, find_lane, &search, 0);
	index = search.found;
	if (index != head->lane)
		lane__leave(head);
	if (index == LANE_NONE) {
		index = lane__new(head, search.unused, search.oldest);
		if (index >= SHADOW_LANES) {
			head->lo = head->hi = 0; /* ask again next time */
			return -1;
		}
		is_new = 1;
		lane = lane__at(head, index);
		lane->stack = place->stack;
		lane->lo = lane->hi = place->sp & ~(LANE_PAGE - 1);
		head->lanes_used |= 1U << (index & (SHADOW_LANES - 1));
	}
	lane = lane__at(head, index);
	lane->used = ++head->switches;
	head->lane = index;
	lane__extend(head, lane, place->sp);
	shadow = lane__current(head);
	if (!shadow)
		return -1;
	if (!is_new &&
	    (lane->state != place->state || shadow->depth + shadow->overflow > place->frames)) {
		shadow__end(shadow);
		is_new = 1;
	}
	lane->state = place->state;
	return is_new;
}

#endif
