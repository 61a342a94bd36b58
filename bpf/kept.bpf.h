/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_KEPT_BPF_H
#define BRAID_KEPT_BPF_H

/* The outer frames of the thread's last stack: bpf/kept.h. Global functions, which the verifier
 * checks each by itself. */

#include "bpf/scratch.bpf.h"
#include "bpf/tableless.bpf.h"

extern const volatile __u32 cfg_unwind;
extern const volatile __u32 cfg_kept; /* 0: no stacks are kept */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: KEPT_WAYS for each slot */
	__type(key, __u32);
	__type(value, struct kept_stack);
} kept_stacks __weak SEC(".maps");

static __always_inline struct kept_stack *kept__stack(void)
{
	__u32 key = slot__key();

	if (key == SLOT_NONE)
		return NULL;
	key = key * KEPT_WAYS + (__u32)slots__me() % KEPT_WAYS;
	return bpf_map_lookup_elem(&kept_stacks, &key);
}

/* Number of the last change of the tables of this address space: what the unwinder looks up is the
 * same as long as it is. */
__noinline __u32 mappings__version(__u32 space);

/* Before the first frame. */
static __always_inline void kept__begin(struct scratch *scratch)
{
	struct kept_state *state = &scratch->kept;
	const struct kept_stack *kept;

	state->version = KEPT_NO_VERSION;
	state->follows = state->left = state->n_kept = state->first = 0;
	state->start = 0;
	if (!cfg_kept || cfg_unwind == UNWIND_MODE_FP || scratch->unwind.trampoline)
		return;
	kept = kept__stack();
	if (!kept)
		return;
	state->version = mappings__version(scratch->proc.space);
	if (kept->tgid == scratch->sample.tgid && kept->program == scratch->proc.program &&
	    kept->space == scratch->proc.space && kept->version == state->version)
		state->left = kept->n;
}

/* A word of stack memory into u->value. */
__noinline int kept__read(struct scratch *scratch, __u64 address)
{
	struct kept_state *state;
	__u64 at;

	if (!scratch || address & 7)
		return -1;
	state = &scratch->kept;
	at = address - state->start;
	if (!state->start || at >= sizeof(state->block)) {
		/* The registers that belong to a return address are saved a little below. */
		state->start = address - 64;
		at = 64;
		if (bpf_probe_read_user(state->block, sizeof(state->block), (void *)state->start)) {
			state->start = 0; /* too close to the stack's end */
			return stack__read(&scratch->unwind, address);
		}
	}
	scratch->unwind.value = state->block[(at >> 3) & (KEPT_BLOCK_WORDS - 1)];
	return 0;
}

static __always_inline int kept__is(struct scratch *scratch, __u64 address, __u64 value)
{
	const struct kept_state *state = &scratch->kept;
	__u64 at = address - state->start;

	if (state->start && at < sizeof(state->block) && !(at & 7)) { /* most often */
		barrier_var(at); /* or the compiler leaves out what the verifier wants */
		return state->block[(at >> 3) & (KEPT_BLOCK_WORDS - 1)] == value;
	}
	return !kept__read(scratch, address) && scratch->unwind.value == value;
}

/* Does the frame lead to the next one still? */
static __always_inline int kept__holds(struct scratch *scratch, const struct kept_frame *frame,
				       const struct kept_frame *next)
{
	if (!kept__is(scratch, frame->cfa - 8, next->pc))
		return 0;
	if (frame->rbp_at && !kept__is(scratch, frame->cfa + frame->rbp_at, next->rbp))
		return 0;
	return !frame->rbx_at || kept__is(scratch, frame->cfa + frame->rbx_at, next->rbx);
}

static __always_inline int kept__is_state(const struct unwind_state *u,
					  const struct kept_frame *frame)
{
	return frame->pc == u->pc && frame->sp == u->sp && frame->rbp == u->rbp &&
	       frame->rbx == u->rbx && !(frame->flags & KEPT_RBP_LOST) == !u->rbp_lost &&
	       !(frame->flags & KEPT_RBX_LOST) == !u->rbx_lost;
}

/* The unwinder goes on from this frame. */
static __always_inline void kept__resume(struct unwind_state *u, const struct kept_frame *frame)
{
	u->pc = frame->pc;
	u->sp = frame->sp;
	u->rbp = frame->rbp;
	u->rbx = frame->rbx;
	u->rbp_lost = !!(frame->flags & KEPT_RBP_LOST);
	u->rbx_lost = !!(frame->flags & KEPT_RBX_LOST);
}

/* What kept__enter returns. */
enum kept_found {
	KEPT_NONE,  /* the frame is to be unwound */
	KEPT_ENDED, /* frames are there to the end, or so many that there is no room for more */
};

struct kept_following {
	struct scratch *scratch;
	const struct kept_stack *kept;
	__u64 found; /* enum kept_found */
};

static long kept__follow_frame(__u32 index, void *ctx)
{
	struct kept_following *following = ctx;
	struct scratch *scratch = following->scratch;
	struct kept_state *state = &scratch->kept;
	struct unwind_state *u = &scratch->unwind;
	__u32 at = (state->left - 1) & (KEPT_FRAMES_MAX - 1);
	const struct kept_frame *frame = &following->kept->frames[at];
	const struct kept_frame *next = &following->kept->frames[(at - 1) & (KEPT_FRAMES_MAX - 1)];
	int holds;

	(void)index;
	following->found = KEPT_ENDED;
	if (u->n >= NATIVE_FRAMES_MAX)
		return 1;
	state->left = at;
	if (at)
		holds = kept__holds(scratch, frame, next);
	else
		holds = frame->flags & KEPT_OUTERMOST || kept__is(scratch, frame->cfa - 8, 0);
	if (!holds) {
		following->found = KEPT_NONE;
		kept__resume(u, frame);
		state->follows = state->n_kept = 0;
		state->first = u->n;
		return 1;
	}
	scratch__push(scratch, frame->pc, frame->cfa);
	u->n++;
	u->complete = !at;
	return !at;
}

/* Frames that are as they were, from this one on. */
static __always_inline int kept__follow(struct scratch *scratch, const struct kept_stack *kept)
{
	struct kept_following following = { .scratch = scratch, .kept = kept };
	struct kept_state *state = &scratch->kept;

	state->follows = 1;
	state->n_kept = state->left;
	state->end = scratch->unwind.n;
	bpf_loop(KEPT_FRAMES_MAX, kept__follow_frame, &following, 0);
	return (int)following.found;
}

/* Before a frame is unwound. */
__noinline int kept__enter(struct scratch *scratch)
{
	const struct kept_stack *kept;
	struct kept_state *state;
	struct kept_frame *entered;
	struct unwind_state *u;
	__u32 i;

	if (!scratch || scratch->kept.version == KEPT_NO_VERSION)
		return KEPT_NONE;
	state = &scratch->kept;
	u = &scratch->unwind;
	kept = kept__stack();
	if (!kept || u->n >= NATIVE_FRAMES_MAX)
		return u->n >= NATIVE_FRAMES_MAX ? KEPT_ENDED : KEPT_NONE;
	entered = &state->frames[u->n & (KEPT_FRAMES_MAX - 1)];
	entered->flags = 0;
	if (u->exact || u->leaf)
		return KEPT_NONE;
	for (i = 0; i < KEPT_SEARCHED && state->left; i++) {
		const struct kept_frame *frame =
			&kept->frames[(state->left - 1) & (KEPT_FRAMES_MAX - 1)];

		if (frame->sp > u->sp)
			break;
		if (kept__is_state(u, frame)) {
			if (kept__follow(scratch, kept) == KEPT_ENDED)
				return KEPT_ENDED;
			break; /* at a frame that leads to another one now: it is to be unwound */
		}
		state->left--;
	}
	entered = &state->frames[u->n & (KEPT_FRAMES_MAX - 1)];
	entered->pc = u->pc;
	entered->sp = u->sp;
	entered->rbp = u->rbp;
	entered->rbx = u->rbx;
	entered->flags =
		KEPT_GOOD | (u->rbp_lost ? KEPT_RBP_LOST : 0) | (u->rbx_lost ? KEPT_RBX_LOST : 0);
	return KEPT_NONE;
}

/* Where a register is that the rule says is saved, from the CFA; 0: it is not. */
static __always_inline __s64 kept__saved_at(const struct kept_frame *frame, __s16 words, int at_rbp)
{
	if (words == UNWIND_WORDS_LOST || (words == UNWIND_WORDS_SAME && !at_rbp))
		return 0;
	return (__s64)words * 8 + (at_rbp ? frame->rbp - frame->cfa : 0);
}

#define KEPT_AT_MAX (1LL << 24) /* bytes; frames are smaller */

static __always_inline int kept__is_near(__s64 at)
{
	return at > -KEPT_AT_MAX && at < KEPT_AT_MAX;
}

/* After it was, by a rule of a table or not, and before it is counted. */
__noinline int kept__leave(struct scratch *scratch, int failed)
{
	const struct unwind_rule *rule;
	struct kept_frame *frame;
	struct unwind_state *u;
	__s64 rbp_at, rbx_at;

	if (!scratch || scratch->kept.version == KEPT_NO_VERSION)
		return 0;
	u = &scratch->unwind;
	rule = &u->rule;
	frame = &scratch->kept.frames[u->n & (KEPT_FRAMES_MAX - 1)];
	frame->cfa = u->cfa;
	frame->rbp_at = frame->rbx_at = 0;
	if (!u->tabled || failed || u->unpublished ||
	    (rule->kind != UNWIND_REG && rule->kind != UNWIND_PLT && rule->kind != UNWIND_END)) {
		frame->flags = 0;
		return 0;
	}
	if (rule->kind == UNWIND_END) {
		frame->flags |= KEPT_OUTERMOST;
		return 0;
	}
	rbp_at = kept__saved_at(frame, rule->rbp_words, rule->flags & UNWIND_RBP_AT_RBP);
	rbx_at = kept__saved_at(frame, rule->rbx_words, rule->flags & UNWIND_RBX_AT_RBP);
	if (!kept__is_near(rbp_at) || !kept__is_near(rbx_at) ||
	    (!rbp_at && rule->flags & UNWIND_RBP_AT_RBP) ||
	    (!rbx_at && rule->flags & UNWIND_RBX_AT_RBP))
		frame->flags = 0;
	frame->rbp_at = (__s32)rbp_at;
	frame->rbx_at = (__s32)rbx_at;
	return 0;
}

struct kept_saving {
	const struct kept_state *state;
	struct kept_stack *kept;
};

/* The index-th of those that were unwound, from the outermost one on. */
static long kept__save_frame(__u32 index, void *ctx)
{
	struct kept_saving *saving = ctx;
	const struct kept_state *state = saving->state;
	struct kept_stack *kept = saving->kept;
	__u32 number = state->end - 1 - index, at = kept->n;
	const struct kept_frame *frame = &state->frames[number & (KEPT_FRAMES_MAX - 1)];

	if (state->end <= index || number < state->first || at >= KEPT_FRAMES_MAX ||
	    !(frame->flags & KEPT_GOOD))
		return 1;
	kept->frames[at & (KEPT_FRAMES_MAX - 1)] = *frame;
	kept->n = at + 1;
	return 0;
}

/* After the last frame. */
__noinline int kept__save(struct scratch *scratch)
{
	struct kept_stack *kept = kept__stack();
	struct kept_saving saving;
	struct kept_state *state;

	if (!scratch || !kept || scratch->kept.version == KEPT_NO_VERSION)
		return 0;
	state = &scratch->kept;
	if (!scratch->unwind.complete) /* frames were passed, but none is another one */
		return 0;
	if (mappings__version(scratch->proc.space) != state->version) {
		kept->n = 0;
		return 0;
	}
	if (!state->follows)
		state->end = scratch->unwind.n;
	kept->n = state->n_kept;
	kept->tgid = scratch->sample.tgid;
	kept->program = scratch->proc.program;
	kept->space = scratch->proc.space;
	kept->version = state->version;
	saving.state = state;
	saving.kept = kept;
	bpf_loop(KEPT_FRAMES_MAX, kept__save_frame, &saving, 0);
	return 0;
}

#endif
