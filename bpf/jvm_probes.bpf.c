// SPDX-License-Identifier: GPL-2.0
#include "bpf/jvm_probes.bpf.h"

/* HotSpot's calls: USDT method__entry and method__return. These are in functions of libjvm that
 * Java code calls directly. So the end of the probe's own native frame is the stack pointer of
 * the Java frame. This is a call's anchor: any place in a compiled frame, or the start of the
 * operands in an interpreted frame.
 *
 * A frame may be moved during its call. A compiled frame replaces an interpreted one (OSR), or
 * several interpreted frames replace one (deoptimisation), near by. So addresses are evidence
 * only beyond a distance: an entry that is further below than JVM_SLACK is dead.
 *
 * Each call reports its end, also by exceptions, except for some methods that C1 has inlined
 * (JDK 17 to 25). C1 reports no end if such a method is left for a handler in the outer method,
 * or together with it. So a return ends all inner calls. Calls in between seem to be made by the
 * dead method. If the same place of the same frame reports an entry again, its previous entry
 * has ended. */

#define JVM_SLACK 8192

/* Limits for the distance between the stack pointers at a call's entry and its return. The
 * interpreter has the result on the stack, and aligns it. */
#define JVM_NEAR_LOW  (-8)
#define JVM_NEAR_HIGH 24

/* shadow_entry.match: the method, and the address of its frame. */
#define JVM_MATCH(id, sp)   ((__u64)(id) << 32 | (__u32)(sp))
#define JVM_MATCH_ID(match) ((__u32)((match) >> 32))
#define JVM_MATCH_SP(match) ((__u32)(match))

/* shadow_entry.flags, upper bits: the place in the Java code that reported the entry. They
 * distinguish more places than a compiled method has. */
#define ENTRY_PLACE_SHIFT     4
#define ENTRY_PLACE(pc)	      ((__u32)(pc) << ENTRY_PLACE_SHIFT)
#define ENTRY_PLACE_OF(flags) ((flags) >> ENTRY_PLACE_SHIFT << ENTRY_PLACE_SHIFT)

/* Returns the distance from the first to the second, positive outwards. */
static __always_inline __s32 distance(__u32 from_sp, __u32 to_sp)
{
	return to_sp - from_sp;
}

static __always_inline __u32 entry__sp(struct shadow *shadow, __u32 at)
{
	return JVM_MATCH_SP(shadow__entry(shadow, at)->match);
}

struct jvm_search {
	struct shadow_search drop; /* first, for drop_to */
	__u32 id, sp;
	__u32 place; /* as in flags */
	__u32 moved; /* index + 1 of an entry that fits if its frame was moved; 0: none */
};

/* --- entry --- */

static long find_dead(__u32 index, void *arg)
{
	struct jvm_search *search = arg;

	(void)index;
	if (!search->drop.keep || distance(entry__sp(search->drop.shadow, search->drop.keep - 1),
					   search->sp) <= JVM_SLACK)
		return 1;
	search->drop.keep--;
	return 0;
}

/* Searches the place among the calls in the same frame. */
static long find_place(__u32 index, void *arg)
{
	struct jvm_search *search = arg;
	struct shadow *shadow = search->drop.shadow;
	__u32 at = shadow->depth - 1 - index;

	if (index >= shadow->depth || entry__sp(shadow, at) != search->sp)
		return 1;
	if (ENTRY_PLACE_OF(shadow__entry(shadow, at)->flags) == search->place)
		search->drop.keep = at;
	return 0;
}

/* Drops entries that a call in the same frame as the one before, or further out, proves to be
 * dead. */
__weak __noinline int jvm__prune(struct shadow *shadow, __u32 sp, __u32 place)
{
	struct jvm_search search = { .drop = { .shadow = shadow }, .sp = sp, .place = place };

	if (!shadow)
		return 0;
	if (shadow->overflow && distance(entry__sp(shadow, SHADOW_DEPTH_MAX - 1), sp) > 0)
		shadow->overflow = 0;
	if (cfg_calls)
		search.drop.now_ns = bpf_ktime_get_ns();
	search.drop.keep = shadow->depth;
	bpf_loop(SHADOW_DEPTH_MAX, find_dead, &search, 0);
	drop_to(&search.drop);
	if (shadow->overflow)
		return 0;
	search.drop.keep = shadow->depth;
	bpf_loop(SHADOW_DEPTH_MAX, find_place, &search, 0);
	drop_to(&search.drop);
	return 0;
}

#define JVM_INLINED 3 /* calls in one frame that are checked at once */

/* Returns true if a call may prove an entry dead; a quick check. */
static __always_inline int may_prune(struct shadow *shadow, __u32 sp, __u32 place)
{
	__u32 depth = shadow->depth, i;
	__s32 above;

	for (i = 0; i < JVM_INLINED; i++) {
		if (i >= depth)
			return 0;
		above = distance(sp, entry__sp(shadow, depth - 1 - i));
		if (above)
			return above < 0;
		if (ENTRY_PLACE_OF(shadow__entry(shadow, depth - 1 - i)->flags) == place)
			return 1;
	}
	return 1;
}

static __noinline int begin(struct shadow *shadow, const struct probe_rec *rec)
{
	const struct task_struct *task = bpf_get_current_task_btf();

	shadow__begin(shadow, rec->space);
	shadow->flags |= SHADOW_FRAMES_MOVE;
	if (!rec->since_ns || task->start_time < rec->since_ns)
		shadow->flags |= SHADOW_PARTIAL;
	return 0;
}

SEC("?uprobe")
int jvm_method_entry(struct pt_regs *ctx)
{
	const struct probe_rec *rec = probe__rec(ctx);
	struct shadow_call call = { .index = JVM_NO_BCI };
	struct jvm_args args;
	struct shadow *shadow;
	__u64 sp, pc;

	if (!rec)
		return 0;
	shadow = shadow__get(probe__owner(ctx, rec));
	if (!shadow)
		return 0;
	if (shadow__is_new(shadow))
		begin(shadow, rec);
	else if (shadow->space != rec->space)
		shadow__move(shadow, rec->space);
	sp = probe__anchor(ctx, rec);
	if (bpf_probe_read_user(&pc, sizeof(pc), (void *)(sp - sizeof(pc))))
		count(COUNT_PROBE_READ);
	args__read(ctx, rec, &args);
	call.anchor = sp;
	call.match = JVM_MATCH(args__id(&args), sp);
	call.flags = ENTRY_PLACE(pc);
	call.code = method__number(ctx, rec, shadow, &args);
	if (may_prune(shadow, sp, call.flags))
		jvm__prune(shadow, sp, call.flags);
	shadow__add(shadow, &call);
	return 0;
}

/* --- return --- */

/* Searches the innermost entry of the method whose frame is at the return's address, or near. */
static long find_call(__u32 index, void *arg)
{
	struct jvm_search *search = arg;
	struct shadow *shadow = search->drop.shadow;
	__u32 at = shadow->depth - 1 - index;
	__s32 above;

	if (index >= shadow->depth)
		return 1;
	above = distance(search->sp, entry__sp(shadow, at));
	if (above > JVM_SLACK)
		return 1;
	if (JVM_MATCH_ID(shadow__entry(shadow, at)->match) != search->id || above < -JVM_SLACK)
		return 0;
	if (!search->moved)
		search->moved = at + 1;
	if (above < JVM_NEAR_LOW || above > JVM_NEAR_HIGH)
		return 0;
	search->drop.keep = at;
	search->drop.found = 1;
	return 1;
}

/* Handles a return that does not match the innermost entry. */
__weak __noinline int jvm__repair(struct shadow *shadow, __u64 match)
{
	struct jvm_search search = { .drop = { .shadow = shadow } };

	if (!shadow)
		return 0;
	search.id = JVM_MATCH_ID(match);
	search.sp = JVM_MATCH_SP(match);
	if (shadow->overflow) {
		if (distance(entry__sp(shadow, SHADOW_DEPTH_MAX - 1), search.sp) <= 0) {
			shadow->overflow--;
			return 0;
		}
		shadow->overflow = 0;
	}
	if (cfg_calls)
		search.drop.now_ns = bpf_ktime_get_ns();
	bpf_loop(SHADOW_DEPTH_MAX, find_call, &search, 0);
	if (!search.drop.found && !search.moved) {
		count(COUNT_SHADOW_UNMATCHED);
		return 0;
	}
	if (!search.drop.found)
		search.drop.keep = search.moved - 1;
	search.drop.keep++;
	drop_to(&search.drop);
	if (shadow->depth)
		shadow__drop(shadow, 0, search.drop.now_ns);
	return 0;
}

SEC("?uprobe")
int jvm_method_return(struct pt_regs *ctx)
{
	const struct probe_rec *rec = probe__rec(ctx);
	struct jvm_args args;
	struct shadow *shadow;
	__u64 match;

	if (!rec)
		return 0;
	shadow = shadow__find(probe__owner(ctx, rec));
	if (!shadow) {
		count(COUNT_SHADOW_UNMATCHED);
		return 0;
	}
	args__read(ctx, rec, &args);
	match = JVM_MATCH(args__id(&args), probe__anchor(ctx, rec));
	if (shadow->depth && !shadow->overflow &&
	    shadow__entry(shadow, shadow->depth - 1)->match == match)
		shadow__drop(shadow, 0, cfg_calls ? bpf_ktime_get_ns() : 0);
	else
		jvm__repair(shadow, match);
	return 0;
}
