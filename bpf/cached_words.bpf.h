/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_CACHED_WORDS_BPF_H
#define BRAID_CACHED_WORDS_BPF_H

/* Cached frames as words of a sample: bpf/cached_unwind.h. */

#include "bpf/runtime_frames.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: cfg_cached_ways for each slot */
	__type(key, __u32);
	__type(value, struct cached_unwind);
} cached_unwinds __weak SEC(".maps");

extern const volatile __u32 cfg_cached_ways;

static __always_inline struct cached_unwind *cached__stack(void)
{
	__u32 key = slot__key();

	if (key == SLOT_NONE)
		return NULL;
	key = key * cfg_cached_ways + (__u32)slots__me() % cfg_cached_ways;
	return bpf_map_lookup_elem(&cached_unwinds, &key);
}

/* Initial hash of a stack: two random odd numbers. Frames are added from the outermost one on, so
 * that the hash of the outer frames serves all stacks that contain them. */
#define FRAMES_HASH_BEGIN                                                     \
	(struct frames_hash)                                                  \
	{                                                                     \
		.hash = 0x9fb21c651e98df25ULL, .check = 0xe220a8397b1dcdafULL \
	}

static __always_inline void frames_hash__add(struct frames_hash *of, __u64 first, __u64 second)
{
	__u64 hash = first * 0x9bbf89cd4a5c6de7 + second * 0xd1b54a32d192ed03;
	__u64 check = first * 0xaef17502108ef2d9 + second * 0xdb4f0b9175ae2165;

	hash = (of->hash ^ hash) * 0xff51afd7ed558ccd;
	check = (of->check ^ check) * 0xc4ceb9fe1a85ec53;
	of->hash = hash ^ hash >> 32;
	of->check = check ^ check >> 29;
}

static __always_inline __u32 cached__evidence(const struct cached_unwind_frame *frame)
{
	return frame->flags >> CACHED_EVIDENCE_SHIFT & 3;
}

/* Returns the pc of @frame in the form of a sample's word, with the evidence in its upper bits. */
static __always_inline __u64 cached__ip(const struct cached_unwind_frame *frame)
{
	return frame->pc | (__u64)cached__evidence(frame) << NATIVE_EVIDENCE_SHIFT;
}

struct cached_copying {
	struct scratch *scratch;
	const struct cached_unwind *cached;
	__u32 at;   /* index of the word in the sample */
	__u32 from; /* number of outermost frames, of which the innermost is copied first */
};

static long cached__copy_frame(__u32 index, void *ctx)
{
	struct cached_copying *copying = ctx;
	__u32 at = copying->at;
	const struct cached_unwind_frame *frame =
		&copying->cached->frames[(copying->from - 1 - index) & (CACHED_FRAMES_MAX - 1)];

	copying->scratch->words[at & (SAMPLE_WORDS_MAX - 1)] = cached__ip(frame);
	copying->scratch->words[(at + 1) & (SAMPLE_WORDS_MAX - 1)] = frame->cfa;
	copying->at = at + 2;
	return 0;
}

/* Copies @n cached frames to the words of the sample from index @at on. The first frame is the
 * innermost of the @from outermost ones. */
__weak __noinline int cached__copy(struct scratch *scratch, struct cached_unwind *cached,
				   __u32 from, __u32 n, __u32 at)
{
	struct cached_copying copying = {
		.scratch = scratch, .cached = cached, .at = at, .from = from
	};

	if (scratch && cached)
		bpf_loop(n, cached__copy_frame, &copying, 0);
	return 0;
}

struct cached_noting {
	struct scratch *scratch;
	const struct cached_unwind *cached;
	__u32 from;
};

static long cached__copy_note(__u32 index, void *ctx)
{
	const struct cached_noting *noting = ctx;
	const struct cached_unwind_frame *frame =
		&noting->cached->frames[(noting->from - 1 - index) & (CACHED_FRAMES_MAX - 1)];

	if (frame->key)
		runtime_frames__add(noting->scratch, frame->key, frame->cfa,
				    frame->flags >> CACHED_WALKER_SHIFT,
				    frame->flags & CACHED_ENTERS);
	return 0;
}

/* Adds the runtime frames of @n cached frames. The first frame is the innermost of the @from
 * outermost ones. */
static __always_inline void cached__copy_notes(struct scratch *scratch,
					       const struct cached_unwind *cached, __u32 from,
					       __u32 n)
{
	struct cached_noting noting = { .scratch = scratch, .cached = cached, .from = from };

	if (from > cached->n_tabled)
		bpf_loop(n, cached__copy_note, &noting, 0);
}

/* Copies the frames that the sample still lacks (cached_unwind_state.absent) into the sample. */
__weak __noinline int cached__complete(struct scratch *scratch)
{
	struct cached_unwind *cached;

	if (!scratch || !scratch->cached.absent)
		return 0;
	cached = cached__stack();
	if (cached)
		cached__copy(scratch, cached, scratch->cached.absent, scratch->cached.absent,
			     scratch->cached.absent_at);
	scratch->cached.absent = 0;
	return 0;
}

#endif
