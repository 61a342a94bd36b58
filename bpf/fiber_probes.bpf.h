/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_FIBER_PROBES_BPF_H
#define BRAID_FIBER_PROBES_BPF_H

/* The current shadow stack of a probe's thread, for a runtime with fibers. */

#include "bpf/fiber_stacks.bpf.h"
#include "bpf/probe.bpf.h"

/* Finds the thread's current stack (fiber__change). @own: 1 if the probe's call has a frame.
 * Returns a negative value if there is no space for the stack. */
typedef int (*fiber_find_fn)(struct shadow *head, __u64 sp, __u32 own);

/* Begins the shadow stacks of a thread. A child after fork has its parent's calls. */
static __noinline int fiber__begin(struct shadow *head, const struct probe_rec *rec)
{
	if (!(head->flags & SHADOW_COPIED)) {
		shadow__begin(head, rec->space);
		return 0;
	}
	head->flags = SHADOW_STARTED | SHADOW_PARTIAL;
	shadow__move(head, rec->space);
	return 0;
}

/* Returns the current shadow stack, or NULL if there is none, or no space for one. */
static __always_inline struct shadow *fiber__shadow(struct pt_regs *ctx, struct shadow *head,
						    const struct probe_rec *rec, __u32 own,
						    fiber_find_fn find)
{
	struct shadow *shadow;

	if (head->space != rec->space)
		shadow__move(head, rec->space);
	if (!fiber__has(head, ctx->rsp) && SHADOW_REGION(head->owner) == SHADOW_OF_THREAD &&
	    find(head, ctx->rsp, own) < 0)
		return NULL;
	if (!head->fiber)
		return head;
	shadow = fiber__further(head);
	if (shadow && shadow->space != rec->space)
		shadow__move(shadow, rec->space);
	return shadow;
}

static __always_inline struct shadow *fiber__entered(struct pt_regs *ctx,
						     const struct probe_rec *rec, __u32 own,
						     fiber_find_fn find)
{
	struct shadow *head = shadow__get(probe__owner(ctx, rec));

	if (!head)
		return NULL;
	if (shadow__is_new(head))
		fiber__begin(head, rec);
	return fiber__shadow(ctx, head, rec, own, find);
}

static __always_inline struct shadow *fiber__returned(struct pt_regs *ctx,
						      const struct probe_rec *rec, __u32 own,
						      fiber_find_fn find)
{
	struct shadow *shadow = shadow__find(probe__owner(ctx, rec));

	if (shadow && !shadow__is_new(shadow))
		shadow = fiber__shadow(ctx, shadow, rec, own, find);
	if (!shadow)
		count(COUNT_SHADOW_UNMATCHED);
	return shadow;
}

#endif
