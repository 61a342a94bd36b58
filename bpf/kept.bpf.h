/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_KEPT_BPF_H
#define BRAID_KEPT_BPF_H

/* The outer frames of the thread's last stack: bpf/kept.h. The verifier checks each of these global
 * functions separately. */

#include "bpf/kept_words.bpf.h"
#include "bpf/tableless.bpf.h"

extern const volatile __u32 cfg_kept; /* 0: stacks are not stored */

/* Returns the number of the last change of the tables of an address space. Look-ups of the unwinder
 * give the same results while it is unchanged. */
__noinline __u32 mappings__version(__u32 space);

/* Returns the number of frames of another sample that are usable for this one. */
static __always_inline __u32 kept__usable(const struct kept_stack *kept,
					  const struct scratch *scratch, __u32 version)
{
	if (kept->tgid != scratch->sample.tgid || kept->program != scratch->proc.program ||
	    kept->space != scratch->proc.space || kept->version != version ||
	    kept->walkers != scratch->proc.walkers)
		return 0;
	return scratch->sample.time_ns - kept->checked_ns < KEPT_NS ? kept->n : kept->n_tabled;
}

/* Prepares the state before the first frame. */
static __always_inline void kept__begin(struct scratch *scratch)
{
	struct kept_state *state = &scratch->kept;
	const struct kept_stack *kept;

	state->version = KEPT_NO_VERSION;
	state->follows = state->left = state->n_kept = state->first = 0;
	state->absent = 0;
	state->bytes = 0;
	if (!cfg_kept)
		return;
	kept = kept__stack();
	if (!kept)
		return;
	state->version = mappings__version(scratch->proc.space);
	state->left = kept__usable(kept, scratch, state->version);
}

/* Fills the block with the word at @address and those around it, up to @end. That is the end of the
 * stored frames: the stack may end there, too. */
__noinline int kept__fill(struct scratch *scratch, __u64 address, __u64 end)
{
	struct kept_state *state;
	__u64 bytes, start;

	if (!scratch || address & 7)
		return -1;
	state = &scratch->kept;
	/* The saved registers that belong to a return address are a little below it. */
	start = address - 64;
	bytes = end - start;
	if (bytes > sizeof(state->block))
		bytes = sizeof(state->block);
	state->start = start;
	state->bytes = 0;
	if (bpf_probe_read_user(state->block, bytes, (void *)start))
		return -1;
	state->bytes = bytes;
	return address - start < bytes ? 0 : -1;
}

static __always_inline int kept__is_state(const struct unwind_state *u,
					  const struct kept_frame *frame)
{
	return frame->pc == u->pc && frame->sp == u->sp && frame->rbp == u->rbp &&
	       frame->rbx == u->rbx && kept__evidence(frame) == u->evidence &&
	       !(frame->flags & KEPT_RBP_LOST) == !u->rbp_lost &&
	       !(frame->flags & KEPT_RBX_LOST) == !u->rbx_lost;
}

/* Makes the unwinder continue from @frame. */
static __always_inline void kept__resume(struct unwind_state *u, const struct kept_frame *frame)
{
	u->pc = frame->pc;
	u->sp = frame->sp;
	u->rbp = frame->rbp;
	u->rbx = frame->rbx;
	u->rbp_lost = !!(frame->flags & KEPT_RBP_LOST);
	u->rbx_lost = !!(frame->flags & KEPT_RBX_LOST);
	u->evidence = kept__evidence(frame);
}

/* The result of kept__enter. */
enum kept_found {
	KEPT_NONE,  /* the frame must be unwound */
	KEPT_ENDED, /* the frames are complete, or there is no room for more */
};

#define KEPT_SLOTS_PER_STEP 4

struct kept_following {
	struct scratch *scratch;
	const struct kept_stack *kept;
	__u64 address; /* address of the next slot to compare */
	__u64 end;     /* address after all slots */
	__u32 left;    /* number of remaining slots */
};

/* Compares the next KEPT_SLOTS_PER_STEP slots; ends at the first difference. */
static long kept__compare(__u32 index, void *ctx)
{
	struct kept_following *following = ctx;
	struct scratch *scratch = following->scratch;
	const struct kept_stack *kept = following->kept;
	struct kept_state *state = &scratch->kept;
	__u64 address = following->address, at;
	__u32 left = following->left, i, slot;

	(void)index;
	for (i = 0; i < KEPT_SLOTS_PER_STEP; i++) {
		if (!left)
			return 1;
		at = address - state->start;
		if (at >= state->bytes) {
			if (kept__fill(scratch, address, following->end))
				return 1;
			at = address - state->start;
		}
		slot = (left - 1) & (KEPT_SLOTS_MAX - 1);
		if (state->block[(at >> 3) & (KEPT_BLOCK_WORDS - 1)] != kept->values[slot])
			return 1;
		address += kept->steps[slot];
		left--;
		following->left = left;
	}
	following->address = address;
	return 0;
}

/* Adds the unchanged frames, from this one outward. Returns 1 if all of them are unchanged. */
static __always_inline int kept__follow(struct scratch *scratch, struct kept_stack *kept)
{
	struct kept_state *state = &scratch->kept;
	struct unwind_state *u = &scratch->unwind;
	const struct kept_frame *innermost =
		&kept->frames[(state->left - 1) & (KEPT_FRAMES_MAX - 1)];
	struct kept_following following = { .scratch = scratch,
					    .kept = kept,
					    .address = innermost->top,
					    .end = kept->end,
					    .left = innermost->slots };
	__u32 same = state->left, at = scratch->n_words;

	if (u->n + same > NATIVE_FRAMES_MAX)
		return 0; /* too many: the unwinder decides which ones are omitted */
	bpf_loop(KEPT_SLOTS_MAX / KEPT_SLOTS_PER_STEP + 1, kept__compare, &following, 0);
	if (following.left) {
		/* The frame has another caller now, and must be unwound. */
		__u32 frame = kept->owners[(following.left - 1) & (KEPT_SLOTS_MAX - 1)];

		same = state->left - 1 - frame;
		if (same >= KEPT_FRAMES_MAX)
			return 0;
		kept__copy(scratch, kept, state->left, same, at);
		kept__copy_notes(scratch, kept, state->left, same);
		state->left = frame;
		kept__resume(u, &kept->frames[frame & (KEPT_FRAMES_MAX - 1)]);
		state->first = u->n + same;
	} else {
		state->absent = state->n_kept = same;
		state->absent_at = at;
		state->absent_hash = kept->hashes[(same - 1) & (KEPT_FRAMES_MAX - 1)];
		kept__copy(scratch, kept, 1, 1, at + 2 * (same - 1));
		kept__copy_notes(scratch, kept, same, same);
		state->follows = 1;
		state->left = 0;
		state->end = u->n;
		u->complete = 1;
	}
	scratch->n_words = at + 2 * same;
	u->n += same;
	u->last = 0;
	return !following.left;
}

/* Searches a stored frame before the current frame is unwound. */
__noinline int kept__enter(struct scratch *scratch)
{
	struct kept_stack *kept;
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
			if (kept__follow(scratch, kept))
				return KEPT_ENDED;
			break;
		}
		state->left--;
	}
	entered = &state->frames[u->n & (KEPT_FRAMES_MAX - 1)];
	entered->pc = u->pc;
	entered->sp = u->sp;
	entered->rbp = u->rbp;
	entered->rbx = u->rbx;
	entered->flags = KEPT_GOOD | (u->rbp_lost ? KEPT_RBP_LOST : 0) |
			 (u->rbx_lost ? KEPT_RBX_LOST : 0) | u->evidence << KEPT_EVIDENCE_SHIFT;
	return KEPT_NONE;
}

/* Returns the place of a register that is saved by the rule, from the CFA; 0: not saved. */
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

static __always_inline void kept__leave_note(struct kept_state *state, __u32 number,
					     const struct frame_note *note)
{
	struct kept_frame *frame = &state->frames[number & (KEPT_FRAMES_MAX - 1)];
	__u64 *words = state->words[number & (KEPT_FRAMES_MAX - 1)];

	frame->flags |= KEPT_TABLELESS | (note->enters ? KEPT_ENTERS : 0) |
			note->walker << KEPT_WALKER_SHIFT;
	frame->key = note->key;
	frame->mask = note->mask;
	for (int i = 0; i < NOTE_WORDS; i++)
		words[i] = note->words[i];
}

/* Records the frame after it was unwound, with or without a table, and before it is counted. */
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
	frame->key = 0;
	frame->mask = 0;
	if ((!u->tabled && (!u->note.lasts || u->note.brief)) || failed || u->unpublished ||
	    u->evidence == EVIDENCE_INFERRED || (u->cfa <= frame->sp && rule->kind != UNWIND_END) ||
	    (rule->kind != UNWIND_REG && rule->kind != UNWIND_PLT && rule->kind != UNWIND_END)) {
		frame->flags = 0;
		return 0;
	}
	if (!u->tabled)
		kept__leave_note(&scratch->kept, u->n, &u->note);
	if (rule->kind == UNWIND_END) {
		frame->flags |= KEPT_OUTERMOST;
		return 0;
	}
	rbp_at = kept__saved_at(frame, rule->fp_words, rule->flags & UNWIND_FP_AT_FP);
	rbx_at = kept__saved_at(frame, rule->aux_words, rule->flags & UNWIND_AUX_AT_FP);
	if (!kept__is_near(rbp_at) || !kept__is_near(rbx_at) ||
	    (!rbp_at && rule->flags & UNWIND_FP_AT_FP) ||
	    (!rbx_at && rule->flags & UNWIND_AUX_AT_FP))
		frame->flags = 0;
	frame->rbp_at = (__s32)rbp_at;
	frame->rbx_at = (__s32)rbx_at;
	return 0;
}

struct kept_saving {
	const struct kept_state *state;
	struct kept_stack *kept;
	struct frames_hash hash;
	__u64 top; /* address of the last slot */
	__u32 slots;
};

static __always_inline int kept__save_slot(struct kept_saving *saving, __u64 address, __u64 value)
{
	struct kept_stack *kept = saving->kept;
	__u32 slot = saving->slots;
	__s64 step = slot ? (__s64)(saving->top - address) : 0;

	if (slot >= KEPT_SLOTS_MAX || address & 7 || !kept__is_near(step))
		return -1;
	saving->slots = slot + 1;
	saving->top = address;
	if (!slot)
		kept->end = address + 8;
	barrier_var(slot); /* otherwise the compiler removes the check that the verifier requires */
	slot &= KEPT_SLOTS_MAX - 1;
	kept->values[slot] = value;
	kept->steps[slot] = (__s32)step;
	kept->owners[slot] = kept->n;
	return 0;
}

/* Saves the words of the stack that the runtime of the frame has examined. */
static __always_inline int kept__save_note(struct kept_saving *saving,
					   const struct kept_frame *frame, __u32 number)
{
	const __u64 *words = saving->state->words[number & (KEPT_FRAMES_MAX - 1)];

	for (int i = 0; i < NOTE_WORDS; i++)
		if (frame->mask & 1U << i &&
		    kept__save_slot(saving, frame->cfa - NOTE_WORDS_AT - 8 * i, words[i]))
			return -1;
	return 0;
}

/* Saves the words that determine the caller of this frame. The caller, if any, is the last stored
 * frame. */
static __always_inline int kept__save_slots(struct kept_saving *saving,
					    const struct kept_frame *frame)
{
	const struct kept_stack *kept = saving->kept;
	const struct kept_frame *outer = &kept->frames[(kept->n - 1) & (KEPT_FRAMES_MAX - 1)];

	if (!kept->n)
		return frame->flags & KEPT_OUTERMOST ? 0
						     : kept__save_slot(saving, frame->cfa - 8, 0);
	if (kept__save_slot(saving, frame->cfa - 8, outer->pc))
		return -1;
	if (frame->rbx_at && kept__save_slot(saving, frame->cfa + frame->rbx_at, outer->rbx))
		return -1;
	if (frame->rbp_at && kept__save_slot(saving, frame->cfa + frame->rbp_at, outer->rbp))
		return -1;
	return 0;
}

/* Saves the unwound frame @index, counted from the outermost one. */
static long kept__save_frame(__u32 index, void *ctx)
{
	struct kept_saving *saving = ctx;
	const struct kept_state *state = saving->state;
	struct kept_stack *kept = saving->kept;
	__u32 number = state->end - 1 - index, at = kept->n;
	const struct kept_frame *frame = &state->frames[number & (KEPT_FRAMES_MAX - 1)];
	struct kept_frame *to = &kept->frames[at & (KEPT_FRAMES_MAX - 1)];

	if (state->end <= index || number < state->first || at >= KEPT_FRAMES_MAX ||
	    !(frame->flags & KEPT_GOOD))
		return 1;
	if (kept__save_slots(saving, frame) || kept__save_note(saving, frame, number))
		return 1;
	*to = *frame;
	to->top = saving->top;
	to->slots = saving->slots;
	frames_hash__add(&saving->hash, kept__ip(frame), frame->cfa);
	kept->hashes[at & (KEPT_FRAMES_MAX - 1)] = saving->hash;
	kept->n = at + 1;
	if (kept->n_tabled == at && !(frame->flags & KEPT_TABLELESS))
		kept->n_tabled = at + 1;
	return 0;
}

/* Sets the time of the notes. The remaining frames stay at least as old. */
static __always_inline void kept__keep_time(struct kept_stack *kept, __u32 n_kept, __u64 checked_ns)
{
	if (n_kept <= kept->n_tabled || checked_ns < kept->checked_ns)
		kept->checked_ns = checked_ns;
	if (kept->n_tabled > n_kept)
		kept->n_tabled = n_kept;
}

/* Stores the frames after the last one. */
__noinline int kept__save(struct scratch *scratch)
{
	struct kept_stack *kept = kept__stack();
	struct kept_saving saving;
	struct kept_state *state;

	if (!scratch || !kept || scratch->kept.version == KEPT_NO_VERSION)
		return 0;
	state = &scratch->kept;
	if (!scratch->unwind.complete) /* stored frames were skipped, but none has changed */
		return 0;
	if (mappings__version(scratch->proc.space) != state->version) {
		kept->n = 0;
		return 0;
	}
	if (!state->follows)
		state->end = scratch->unwind.n;
	kept__keep_time(kept, state->n_kept, scratch->unwind.checked_ns);
	kept->n = state->n_kept;
	kept->tgid = scratch->sample.tgid;
	kept->program = scratch->proc.program;
	kept->space = scratch->proc.space;
	kept->walkers = scratch->proc.walkers;
	kept->version = state->version;
	saving.state = state;
	saving.kept = kept;
	saving.hash = FRAMES_HASH_BEGIN;
	saving.slots = 0;
	saving.top = 0;
	if (kept->n) {
		const struct kept_frame *last =
			&kept->frames[(kept->n - 1) & (KEPT_FRAMES_MAX - 1)];

		saving.hash = state->absent_hash;
		saving.slots = last->slots;
		saving.top = last->top;
	}
	bpf_loop(KEPT_FRAMES_MAX, kept__save_frame, &saving, 0);
	return 0;
}

#endif
