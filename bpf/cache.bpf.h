/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_CACHE_BPF_H
#define BRAID_CACHE_BPF_H

/* A thread's cache of the functions that it called last. The key consists of the addresses that a
 * probe passes (name, file) and the line; the value is the function's number. */

#include "bpf/shadow.bpf.h"

/* Reading jiffies is almost free, and their length of 1 to 10 ms is precise enough here. */
#define CACHE_JIFFIES 2

static __always_inline struct shadow_cache *cache__at(struct shadow *shadow, __u64 name, __u64 file,
						      __u32 line)
{
	__u64 hash = (name + file + line) * 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio */

	return &shadow->caches[hash >> 57 & (SHADOW_CACHES - 1)];
}

static __always_inline void cache__set(struct shadow *shadow, __u64 name, __u64 file, __u32 line,
				       __u32 code)
{
	struct shadow_cache *cache = cache__at(shadow, name, file, line);

	cache->code = code;
	cache->name = code ? name : 0;
	cache->file = file;
	cache->line = line;
	cache->checked_jiffies = bpf_jiffies64();
}

static __always_inline int cache__is(const struct shadow_cache *cache, __u64 name, __u64 file,
				     __u32 line)
{
	return cache->name == name && cache->file == file && cache->line == line &&
	       bpf_jiffies64() - cache->checked_jiffies < CACHE_JIFFIES;
}

static long cache__forget(__u32 index, void *arg)
{
	struct shadow *shadow = *(struct shadow **)arg;

	shadow->caches[index & (SHADOW_CACHES - 1)].name = 0;
	return 0;
}

/* Moves the thread to address space @space, whose number differs from that at its last probe hit.
 * (The thread shared the old address space with a child.) The cached code belongs to the old one,
 * and is dropped. */
static __always_inline void shadow__move(struct shadow *shadow, __u32 space)
{
	shadow->space = space;
	bpf_loop(SHADOW_CACHES, cache__forget, &shadow, 0);
}

/* Returns 1 if no probe has hit in this thread yet, or none in this child since fork. */
static __always_inline int shadow__is_new(const struct shadow *shadow)
{
	return (shadow->flags & (SHADOW_STARTED | SHADOW_COPIED)) != SHADOW_STARTED;
}

/* Initialises @shadow at the first probe that hits in a thread or in a forked child. */
static __always_inline void shadow__begin(struct shadow *shadow, __u32 space)
{
	if (shadow->space != space)
		shadow__move(shadow, space);
	shadow->flags = SHADOW_STARTED;
	shadow->depth = shadow->overflow = 0;
}

#endif
