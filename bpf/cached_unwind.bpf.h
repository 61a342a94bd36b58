/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_CACHED_UNWIND_BPF_H
#define BRAID_CACHED_UNWIND_BPF_H

/* Reuses the outer frames of the thread's last stack, as described in bpf/cached_unwind.h. These
 * functions are global, so that the verifier checks each of them separately. */

#include "bpf/cached_words.bpf.h"
#include "bpf/tableless.bpf.h"

extern const volatile __u32 cfg_cached; /* 0: stacks are not stored */

/* Returns the number of the last change of the tables of an address space. While this number is
 * unchanged, look-ups of the unwinder give the same results. */
__noinline __u32 mappings__version(__u32 space);

/* Returns the number of frames in @cached that may be used for this sample: frames of the same
 * process, found with the same tables. */
static __always_inline __u32 cached__usable(const struct cached_unwind *cached,
					    const struct scratch *scratch, __u32 version)
{
	if (cached->tgid != scratch->sample.tgid || cached->program != scratch->proc.program ||
	    cached->space != scratch->proc.space || cached->version != version ||
	    cached->walkers != scratch->proc.walkers)
		return 0;
	return scratch->sample.time_ns - cached->checked_ns < CACHED_NS ? cached->n
									: cached->n_tabled;
}

/* Prepares the state before the first frame. */
static __always_inline void cached__begin(struct scratch *scratch)
{
	struct cached_unwind_state *state = &scratch->cached;
	const struct cached_unwind *cached;

	state->version = CACHED_NO_VERSION;
	state->follows = state->left = state->n_cached = state->first = 0;
	state->absent = 0;
	state->bytes = 0;
	if (!cfg_cached)
		return;
	cached = cached__stack();
	if (!cached)
		return;
	state->version = mappings__version(scratch->proc.space);
	state->left = cached__usable(cached, scratch, state->version);
}

/* Reads the stack around @address into the block. The block does not extend beyond @end, where the
 * stored frames end, because the stack may end there, too. */
__noinline int cached__fill(struct scratch *scratch, __u64 address, __u64 end)
{
	struct cached_unwind_state *state;
	__u64 bytes, start;

	if (!scratch || address & 7)
		return -1;
	state = &scratch->cached;
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

static __always_inline int cached__is_state(const struct unwind_state *u,
					    const struct cached_unwind_frame *frame)
{
	return frame->pc == u->pc && frame->sp == u->sp && frame->rbp == u->rbp &&
	       frame->rbx == u->rbx && cached__evidence(frame) == u->evidence &&
	       !(frame->flags & CACHED_RBP_LOST) == !u->rbp_lost &&
	       !(frame->flags & CACHED_RBX_LOST) == !u->rbx_lost;
}

/* Makes the unwinder continue from @frame. */
static __always_inline void cached__resume(struct unwind_state *u,
					   const struct cached_unwind_frame *frame)
{
	u->pc = frame->pc;
	u->sp = frame->sp;
	u->rbp = frame->rbp;
	u->rbx = frame->rbx;
	u->rbp_lost = !!(frame->flags & CACHED_RBP_LOST);
	u->rbx_lost = !!(frame->flags & CACHED_RBX_LOST);
	u->evidence = cached__evidence(frame);
}

/* The result of cached__enter. */
enum cached_found {
	CACHED_NONE,  /* the frame must be unwound */
	CACHED_ENDED, /* the frames are complete, or there is no room for more */
};

#define CACHED_SLOTS_PER_STEP 4

struct cached_following {
	struct scratch *scratch;
	const struct cached_unwind *cached;
	__u64 address; /* address of the next slot to compare */
	__u64 end;     /* address after all slots */
	__u32 left;    /* number of remaining slots */
};

/* Compares the next CACHED_SLOTS_PER_STEP slots; ends at the first difference. */
static long cached__compare(__u32 index, void *ctx)
{
	struct cached_following *following = ctx;
	struct scratch *scratch = following->scratch;
	const struct cached_unwind *cached = following->cached;
	struct cached_unwind_state *state = &scratch->cached;
	__u64 address = following->address, at;
	__u32 left = following->left, i, slot;

	(void)index;
	for (i = 0; i < CACHED_SLOTS_PER_STEP; i++) {
		if (!left)
			return 1;
		at = address - state->start;
		if (at >= state->bytes) {
			if (cached__fill(scratch, address, following->end))
				return 1;
			at = address - state->start;
		}
		slot = (left - 1) & (CACHED_SLOTS_MAX - 1);
		if (state->block[(at >> 3) & (CACHED_BLOCK_WORDS - 1)] != cached->values[slot])
			return 1;
		address += cached->steps[slot];
		left--;
		following->left = left;
	}
	following->address = address;
	return 0;
}

/* Adds the unchanged frames, from the current one outward. Returns 1 if all of them are unchanged.
 */
static __always_inline int cached__follow(struct scratch *scratch, struct cached_unwind *cached)
{
	struct cached_unwind_state *state = &scratch->cached;
	struct unwind_state *u = &scratch->unwind;
	const struct cached_unwind_frame *innermost =
		&cached->frames[(state->left - 1) & (CACHED_FRAMES_MAX - 1)];
	struct cached_following following = { .scratch = scratch,
					      .cached = cached,
					      .address = innermost->top,
					      .end = cached->end,
					      .left = innermost->slots };
	__u32 same = state->left, at = scratch->n_words;

	if (u->n + same > NATIVE_FRAMES_MAX)
		return 0; /* too many: the unwinder decides which ones are omitted */
	bpf_loop(CACHED_SLOTS_MAX / CACHED_SLOTS_PER_STEP + 1, cached__compare, &following, 0);
	if (following.left) {
		/* The frame has another caller now, and must be unwound. */
		__u32 frame = cached->owners[(following.left - 1) & (CACHED_SLOTS_MAX - 1)];

		same = state->left - 1 - frame;
		if (same >= CACHED_FRAMES_MAX)
			return 0;
		cached__copy(scratch, cached, state->left, same, at);
		cached__copy_notes(scratch, cached, state->left, same);
		state->left = frame;
		cached__resume(u, &cached->frames[frame & (CACHED_FRAMES_MAX - 1)]);
		state->first = u->n + same;
	} else {
		state->absent = state->n_cached = same;
		state->absent_at = at;
		state->absent_hash = cached->hashes[(same - 1) & (CACHED_FRAMES_MAX - 1)];
		cached__copy(scratch, cached, 1, 1, at + 2 * (same - 1));
		cached__copy_notes(scratch, cached, same, same);
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

/* Searches the stored frames for the current frame, before that is unwound. Returns an enum
 * cached_found. */
__noinline int cached__enter(struct scratch *scratch)
{
	struct cached_unwind *cached;
	struct cached_unwind_state *state;
	struct cached_unwind_frame *entered;
	struct unwind_state *u;
	__u32 i;

	if (!scratch || scratch->cached.version == CACHED_NO_VERSION)
		return CACHED_NONE;
	state = &scratch->cached;
	u = &scratch->unwind;
	cached = cached__stack();
	if (!cached || u->n >= NATIVE_FRAMES_MAX)
		return u->n >= NATIVE_FRAMES_MAX ? CACHED_ENDED : CACHED_NONE;
	entered = &state->frames[u->n & (CACHED_FRAMES_MAX - 1)];
	entered->flags = 0;
	if (u->exact || u->leaf)
		return CACHED_NONE;
	for (i = 0; i < CACHED_SEARCHED && state->left; i++) {
		const struct cached_unwind_frame *frame =
			&cached->frames[(state->left - 1) & (CACHED_FRAMES_MAX - 1)];

		if (frame->sp > u->sp)
			break;
		if (cached__is_state(u, frame)) {
			if (cached__follow(scratch, cached))
				return CACHED_ENDED;
			break;
		}
		state->left--;
	}
	entered = &state->frames[u->n & (CACHED_FRAMES_MAX - 1)];
	entered->pc = u->pc;
	entered->sp = u->sp;
	entered->rbp = u->rbp;
	entered->rbx = u->rbx;
	entered->flags = CACHED_GOOD | (u->rbp_lost ? CACHED_RBP_LOST : 0) |
			 (u->rbx_lost ? CACHED_RBX_LOST : 0) | u->evidence << CACHED_EVIDENCE_SHIFT;
	return CACHED_NONE;
}

/* Returns the offset from the CFA at which the frame's rule saves a register; 0: the rule does not
 * save it. */
static __always_inline __s64 cached__saved_at(const struct cached_unwind_frame *frame, __s16 words,
					      int at_rbp)
{
	if (words == UNWIND_WORDS_LOST || (words == UNWIND_WORDS_SAME && !at_rbp))
		return 0;
	return (__s64)words * 8 + (at_rbp ? frame->rbp - frame->cfa : 0);
}

#define CACHED_AT_MAX (1LL << 24) /* bytes; frames are smaller */

static __always_inline int cached__is_near(__s64 at)
{
	return at > -CACHED_AT_MAX && at < CACHED_AT_MAX;
}

static __always_inline void cached__leave_note(struct cached_unwind_state *state, __u32 number,
					       const struct frame_note *note)
{
	struct cached_unwind_frame *frame = &state->frames[number & (CACHED_FRAMES_MAX - 1)];
	__u64 *words = state->words[number & (CACHED_FRAMES_MAX - 1)];

	frame->flags |= CACHED_TABLELESS | (note->enters ? CACHED_ENTERS : 0) |
			note->walker << CACHED_WALKER_SHIFT;
	frame->key = note->key;
	frame->mask = note->mask;
	for (int i = 0; i < NOTE_WORDS; i++)
		words[i] = note->words[i];
}

/* Records the frame after it was unwound, with or without a table, and before it is counted. */
__noinline int cached__leave(struct scratch *scratch, int failed)
{
	const struct unwind_rule *rule;
	struct cached_unwind_frame *frame;
	struct unwind_state *u;
	__s64 rbp_at, rbx_at;

	if (!scratch || scratch->cached.version == CACHED_NO_VERSION)
		return 0;
	u = &scratch->unwind;
	rule = &u->rule;
	frame = &scratch->cached.frames[u->n & (CACHED_FRAMES_MAX - 1)];
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
		cached__leave_note(&scratch->cached, u->n, &u->note);
	if (rule->kind == UNWIND_END) {
		frame->flags |= CACHED_OUTERMOST;
		return 0;
	}
	rbp_at = cached__saved_at(frame, rule->fp_words, rule->flags & UNWIND_FP_AT_FP);
	rbx_at = cached__saved_at(frame, rule->aux_words, rule->flags & UNWIND_AUX_AT_FP);
	if (!cached__is_near(rbp_at) || !cached__is_near(rbx_at) ||
	    (!rbp_at && rule->flags & UNWIND_FP_AT_FP) ||
	    (!rbx_at && rule->flags & UNWIND_AUX_AT_FP))
		frame->flags = 0;
	frame->rbp_at = (__s32)rbp_at;
	frame->rbx_at = (__s32)rbx_at;
	return 0;
}

struct cached_saving {
	const struct cached_unwind_state *state;
	struct cached_unwind *cached;
	struct frames_hash hash;
	__u64 top; /* address of the last slot */
	__u32 slots;
};

static __always_inline int cached__save_slot(struct cached_saving *saving, __u64 address,
					     __u64 value)
{
	struct cached_unwind *cached = saving->cached;
	__u32 slot = saving->slots;
	__s64 step = slot ? (__s64)(saving->top - address) : 0;

	if (slot >= CACHED_SLOTS_MAX || address & 7 || !cached__is_near(step))
		return -1;
	saving->slots = slot + 1;
	saving->top = address;
	if (!slot)
		cached->end = address + 8;
	barrier_var(slot); /* otherwise the compiler removes the check that the verifier requires */
	slot &= CACHED_SLOTS_MAX - 1;
	cached->values[slot] = value;
	cached->steps[slot] = (__s32)step;
	cached->owners[slot] = cached->n;
	return 0;
}

/* Saves the words of the stack that the runtime of the frame has examined. */
static __always_inline int cached__save_note(struct cached_saving *saving,
					     const struct cached_unwind_frame *frame, __u32 number)
{
	const __u64 *words = saving->state->words[number & (CACHED_FRAMES_MAX - 1)];

	for (int i = 0; i < NOTE_WORDS; i++)
		if (frame->mask & 1U << i &&
		    cached__save_slot(saving, frame->cfa - NOTE_WORDS_AT - 8 * i, words[i]))
			return -1;
	return 0;
}

/* Saves the words that determine the caller of this frame. The caller, if any, is the last stored
 * frame. */
static __always_inline int cached__save_slots(struct cached_saving *saving,
					      const struct cached_unwind_frame *frame)
{
	const struct cached_unwind *cached = saving->cached;
	const struct cached_unwind_frame *outer =
		&cached->frames[(cached->n - 1) & (CACHED_FRAMES_MAX - 1)];

	if (!cached->n)
		return frame->flags & CACHED_OUTERMOST
			       ? 0
			       : cached__save_slot(saving, frame->cfa - 8, 0);
	if (cached__save_slot(saving, frame->cfa - 8, outer->pc))
		return -1;
	if (frame->rbx_at && cached__save_slot(saving, frame->cfa + frame->rbx_at, outer->rbx))
		return -1;
	if (frame->rbp_at && cached__save_slot(saving, frame->cfa + frame->rbp_at, outer->rbp))
		return -1;
	return 0;
}

/* Saves the unwound frame @index, counted from the outermost one. */
static long cached__save_frame(__u32 index, void *ctx)
{
	struct cached_saving *saving = ctx;
	const struct cached_unwind_state *state = saving->state;
	struct cached_unwind *cached = saving->cached;
	__u32 number = state->end - 1 - index, at = cached->n;
	const struct cached_unwind_frame *frame = &state->frames[number & (CACHED_FRAMES_MAX - 1)];
	struct cached_unwind_frame *to = &cached->frames[at & (CACHED_FRAMES_MAX - 1)];

	if (state->end <= index || number < state->first || at >= CACHED_FRAMES_MAX ||
	    !(frame->flags & CACHED_GOOD))
		return 1;
	if (cached__save_slots(saving, frame) || cached__save_note(saving, frame, number))
		return 1;
	*to = *frame;
	to->top = saving->top;
	to->slots = saving->slots;
	frames_hash__add(&saving->hash, cached__ip(frame), frame->cfa);
	cached->hashes[at & (CACHED_FRAMES_MAX - 1)] = saving->hash;
	cached->n = at + 1;
	if (cached->n_tabled == at && !(frame->flags & CACHED_TABLELESS))
		cached->n_tabled = at + 1;
	return 0;
}

/* Sets the time of the oldest note: @checked_ns, unless stored frames remain that have an older
 * note. */
static __always_inline void cached__set_time(struct cached_unwind *cached, __u32 n_cached,
					     __u64 checked_ns)
{
	if (n_cached <= cached->n_tabled || checked_ns < cached->checked_ns)
		cached->checked_ns = checked_ns;
	if (cached->n_tabled > n_cached)
		cached->n_tabled = n_cached;
}

/* Stores the unwound frames, after the walk has ended. */
__noinline int cached__save(struct scratch *scratch)
{
	struct cached_unwind *cached = cached__stack();
	struct cached_saving saving;
	struct cached_unwind_state *state;

	if (!scratch || !cached || scratch->cached.version == CACHED_NO_VERSION)
		return 0;
	state = &scratch->cached;
	if (!scratch->unwind.complete) /* stored frames were skipped, but none has changed */
		return 0;
	if (mappings__version(scratch->proc.space) != state->version) {
		cached->n = 0;
		return 0;
	}
	if (!state->follows)
		state->end = scratch->unwind.n;
	cached__set_time(cached, state->n_cached, scratch->unwind.checked_ns);
	cached->n = state->n_cached;
	cached->tgid = scratch->sample.tgid;
	cached->program = scratch->proc.program;
	cached->space = scratch->proc.space;
	cached->walkers = scratch->proc.walkers;
	cached->version = state->version;
	saving.state = state;
	saving.cached = cached;
	saving.hash = FRAMES_HASH_BEGIN;
	saving.slots = 0;
	saving.top = 0;
	if (cached->n) {
		const struct cached_unwind_frame *last =
			&cached->frames[(cached->n - 1) & (CACHED_FRAMES_MAX - 1)];

		saving.hash = state->absent_hash;
		saving.slots = last->slots;
		saving.top = last->top;
	}
	bpf_loop(CACHED_FRAMES_MAX, cached__save_frame, &saving, 0);
	return 0;
}

#endif
