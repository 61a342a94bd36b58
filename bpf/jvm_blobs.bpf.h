/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_JVM_BLOBS_BPF_H
#define BRAID_JVM_BLOBS_BPF_H

/* HotSpot's code cache: finds the piece of code (blob) that a pc lies in, and reads its header
 * (JDK 8 to 28: src/hotspot/share/code/{codeBlob,nmethod}.hpp, memory/heap.cpp). */

#include "bpf/jvm_state.bpf.h"
#include "bpf/tableless.bpf.h"

#define JVM_HOPS_MAX 64
#define JVM_TAG_FREE 0xff

/* Reads the tags of the JVM_TAGS segments up to `segment`. */
static __always_inline int tags__read(struct jvm_state *state, __u64 segmap, __u32 segment)
{
	state->tags_at = segment < JVM_TAGS ? 0 : segment - JVM_TAGS + 1;
	return jvm__read(state->tags, JVM_TAGS, segmap + state->tags_at);
}

struct block_search {
	struct jvm_state *state;
	__u64 segmap;
	long segment; /* -1: free or unreadable */
	int found;    /* `segment` is the first one of its block */
};

/* Follows one tag. Returns 1 to end the loop. */
static long block__hop(__u32 index, void *ctx)
{
	struct block_search *search = ctx;
	struct jvm_state *state = search->state;
	__u32 segment = search->segment, at = segment - state->tags_at, tag;

	if (!index || at >= JVM_TAGS) {
		if (tags__read(state, search->segmap, segment)) {
			search->segment = -1;
			return 1;
		}
		at = segment - state->tags_at;
	}
	tag = state->tags[at & (JVM_TAGS - 1)];
	search->found = !tag;
	search->segment = tag == JVM_TAG_FREE || tag > segment ? -1 : (long)(segment - tag);
	return !tag || search->segment < 0;
}

/* Returns the first segment of the block that holds `segment`; -1: free or unreadable. A tag is
 * a distance towards it, which may need several steps. The verifier follows a loop of calls
 * once. */
static __always_inline long block__start(struct jvm_state *state, __u64 segmap, __u32 segment)
{
	struct block_search search = { .state = state, .segmap = segmap, .segment = segment };

	bpf_loop(JVM_HOPS_MAX, block__hop, &search, 0);
	return search.found ? search.segment : -1;
}

static __always_inline const struct jvm_heap *heap__find(const struct jvm_proc_rec *proc, __u64 pc)
{
	__u32 i;

	for (i = 0; i < JVM_HEAPS_MAX; i++)
		if (i < proc->n_heaps && pc >= proc->heaps[i].low && pc < proc->heaps[i].high)
			return &proc->heaps[i];
	return NULL;
}

/* Return fields of the last blob read. Offsets come from user space, which checks their bound. */
static __always_inline __u64 blob__u64(const struct jvm_state *state, __u32 offset)
{
	return offset <= JVM_BLOB_BYTES - 8 ? *(__u64 *)(state->blob + offset) : 0;
}

static __always_inline __u32 blob__u32(const struct jvm_state *state, __u32 offset)
{
	return offset <= JVM_BLOB_BYTES - 4 ? *(__u32 *)(state->blob + offset) : 0;
}

static __always_inline __u32 blob__u16(const struct jvm_state *state, __u32 offset)
{
	return offset <= JVM_BLOB_BYTES - 2 ? *(__u16 *)(state->blob + offset) : 0;
}

static __always_inline __u64 blob__code(const struct jvm_state *state,
					const struct jvm_offsets *offsets, __u64 blob)
{
	if (offsets->code_is_offset == 2)
		return blob + blob__u16(state, offsets->blob_code);
	if (offsets->code_is_offset)
		return blob + blob__u32(state, offsets->blob_code);
	return blob__u64(state, offsets->blob_code);
}

/* Returns the offset in the code from which on the frame is complete; negative: HotSpot does not
 * define it, as for stubs. */
static __always_inline int blob__frame_complete(const struct jvm_state *state,
						const struct jvm_offsets *offsets)
{
	return offsets->frame_complete_is_i16
		       ? (__s16)blob__u16(state, offsets->blob_frame_complete)
		       : (int)blob__u32(state, offsets->blob_frame_complete);
}

#define NMETHOD_TEXT	    0x00646f6874656d6eULL /* "nmethod" */
#define NATIVE_NMETHOD_TEXT 0x6e2065766974616eULL /* "native n" */

static __always_inline int blob__is_nmethod(const struct jvm_state *state,
					    const struct jvm_proc_rec *proc)
{
	__u64 name = blob__u64(state, proc->offsets.blob_name), text = 0;

	if (name && (name == proc->nmethod_name || name == proc->native_nmethod_name))
		return 1;
	if (jvm__read(&text, sizeof(text), name))
		return 0;
	return text == NMETHOD_TEXT || text == NATIVE_NMETHOD_TEXT;
}

/* Returns the address of the blob that holds the pc, or 0. */
__noinline __u64 blob__at(struct jvm_state *state, const struct jvm_proc_rec *proc, __u64 pc)
{
	const struct jvm_heap *heap;
	long segment;
	__u64 low;
	__u32 log2;

	if (!state || !proc)
		return 0;
	heap = heap__find(proc, pc);
	if (!heap)
		return 0;
	low = heap->low;
	log2 = heap->segment_log2 & 15;
	segment = block__start(state, heap->segmap, (pc - low) >> log2);
	if (segment < 0)
		return 0;
	return low + ((__u64)segment << log2) + proc->offsets.heap_block;
}

/* Reads the blob that holds the pc. Returns its address, or 0. */
static __always_inline __u64 blob__find(struct jvm_state *state, const struct jvm_proc_rec *proc,
					__u64 pc)
{
	__u64 blob = blob__at(state, proc, pc);

	if (!blob)
		return 0;
	/* The last blob in its heap's memory may be small. */
	if (jvm__read(state->blob, JVM_BLOB_BYTES, blob) &&
	    jvm__read(state->blob, JVM_SMALL_BLOB_BYTES, blob))
		return 0;
	return blob;
}

static __always_inline struct jvm_cache *cache__at(struct jvm_state *state, __u64 pc)
{
	__u64 hash = pc * 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio */

	return &state->caches[hash >> (64 - JVM_MEMOS_LOG2)];
}

/* Returns the words of a frame of the code at the pc; 0: unknown; -1: there is no code. The code
 * may be freed and its place reused, so a cached result expires after NOTE_RECHECK_NS. The check
 * that the caller is Java code is made each time. */
static __always_inline int blob__look(struct unwind_state *u, struct jvm_state *state,
				      const struct jvm_proc_rec *proc, struct jvm_frame *ret)
{
	const struct jvm_offsets *offsets = &proc->offsets;
	struct jvm_cache *cache = cache__at(state, u->pc);
	__u32 words;

	if (!u->exact && cache->pc == u->pc && cache->space == state->space &&
	    state->time_ns - cache->checked_ns < NOTE_RECHECK_NS) {
		ret->blob = cache->blob;
		ret->code = cache->code;
		ret->kind = cache->kind;
		ret->compile_id = cache->compile_id;
		note__is_of(u, cache->checked_ns);
		return cache->words;
	}
	ret->blob = blob__find(state, proc, u->pc - !u->exact);
	if (!ret->blob)
		return -1;
	ret->code = blob__code(state, offsets, ret->blob);
	ret->kind = JVM_BLOB;
	words = blob__u32(state, offsets->blob_frame_size);
	if (words > JVM_FRAME_BYTES_MAX / 8)
		words = 0;
	if (words && blob__is_nmethod(state, proc)) {
		ret->kind = JVM_NMETHOD;
		ret->compile_id = blob__u32(state, offsets->nmethod_compile_id);
	}
	if (u->exact)
		return words;
	cache->pc = u->pc;
	cache->checked_ns = state->time_ns;
	cache->blob = ret->blob;
	cache->code = ret->code;
	cache->space = state->space;
	cache->words = words;
	cache->kind = ret->kind;
	cache->compile_id = ret->compile_id;
	return words;
}

#endif
