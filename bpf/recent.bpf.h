/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_RECENT_BPF_H
#define BRAID_RECENT_BPF_H

/* Facts about the code at return addresses, for UNWIND_MODE_FP.
 *
 * With tables few frames need a proof. UNWIND_MODE_FP uses no tables. It checks the code before
 * each return address, and searches for a proof of each frame pointer. These checks would double
 * the cost of its stacks. So the proven facts are cached.
 *
 * Only facts about the code of images are cached. Code that a process makes may change at any time,
 * and is read each time. The key of a fact is the return address, the address space, the number of
 * the mappings' last change, and the time (in RECENT_NS). So no fact outlives the mapping that it
 * was found in. The time bounds how long a fact outlives code that a process overwrites in its own
 * copy of a file's page. Frames without tables are cached longer (bpf/cached_unwind.h).
 *
 * A failed proof is not cached, because another stack may prove the fact. Only the position of the
 * last failure is cached (RECENT_WORD), so that the next attempt begins there. */

#include "bpf/tableless.bpf.h"

extern const volatile __u32 cfg_unwind;

enum recent_fact {
	RECENT_CALLED = 1,  /* a call ends at the address, which is executable */
	RECENT_POINTER = 2, /* rbp is the frame pointer of the function there */
	RECENT_BODY = 4,    /* the instructions there lead to no return, and set no frame pointer */
	/* A word of the function's frame, one more than its index, is a return address. It prevents
	 * RECENT_POINTER, which is not proven by other means either. */
	RECENT_WORD = 8,
};

#define RECENT_WORD_BITS 10 /* bits of RECENT_WORD */
#define RECENT_FACTS	 ((1ULL << (3 + RECENT_WORD_BITS)) - 1)
#define RECENT_NS_LOG2	 26 /* 67 ms */
_Static_assert(1ULL << RECENT_NS_LOG2 <= NOTE_RECHECK_NS,
	       "a frame with a cached fact can be kept for NOTE_RECHECK_NS");

#define RECENT_MAX_LOG2 13

/* Entries are single words, so that each is read and written atomically: the facts, and the bits of
 * the hash above them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << RECENT_MAX_LOG2);
	__type(key, __u32);
	__type(value, __u64);
} recent __weak SEC(".maps");

static __always_inline __u64 recent__mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
	return hash ^ hash >> 29;
}

/* Initialises the key of the stack before the first frame. */
static __always_inline void recent__begin(struct scratch *scratch)
{
	struct unwind_state *u = &scratch->unwind;
	__u32 version;

	u->recent = 0;
	if (cfg_unwind != UNWIND_MODE_FP)
		return;
	version = mappings__version(scratch->proc.space);
	if (version == CACHED_NO_VERSION)
		return;
	u->recent_ns = scratch->sample.time_ns >> RECENT_NS_LOG2 << RECENT_NS_LOG2;
	u->recent = recent__mix(0, (__u64)scratch->proc.space << 32 | version);
	u->recent = recent__mix(u->recent, u->recent_ns) | 1;
}

static __always_inline volatile __u64 *recent__entry(__u64 hash)
{
	__u32 key = hash >> (64 - RECENT_MAX_LOG2);

	return bpf_map_lookup_elem(&recent, &key);
}

/* Returns the cached facts (enum recent_fact) about the code at @address. */
static __always_inline __u64 recent__facts(struct unwind_state *u, __u64 address)
{
	__u64 hash = recent__mix(u->recent, address), found;
	const volatile __u64 *entry = u->recent ? recent__entry(hash) : NULL;

	if (!entry)
		return 0;
	found = *entry;
	if ((found ^ hash) & ~RECENT_FACTS)
		return 0;
	note__is_of(u, u->recent_ns);
	return found & RECENT_FACTS;
}

/* Adds @facts about the code at @address, which is in the mapping @in. */
static __always_inline void recent__add(const struct unwind_state *u, __u64 address,
					const struct mapping_rec *in, __u64 facts)
{
	__u64 hash = recent__mix(u->recent, address), found;
	volatile __u64 *entry;

	if (!u->recent || !mapping__is_image(in, address))
		return;
	entry = recent__entry(hash);
	if (!entry)
		return;
	found = *entry;
	if ((found ^ hash) & ~RECENT_FACTS)
		found = hash & ~RECENT_FACTS;
	if (facts >= RECENT_WORD)
		found &= ~(RECENT_FACTS & -RECENT_WORD);
	*entry = found | facts;
}

#endif
