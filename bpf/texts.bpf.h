/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_TEXTS_BPF_H
#define BRAID_TEXTS_BPF_H

/* Numbers of functions that probes report by strings. They are identified by the strings'
 * addresses, which are cheap to compare, and from time to time by their content. A probe program
 * can be preempted by another one on the same CPU, so there is no state per CPU: records are made
 * in the ring itself. */

#include "bpf/scratch.bpf.h"

/* Strings that were compared in this time are treated as unchanged. Within it, memory that was
 * reused for other names may be shown under the old ones. */
#define TEXT_RECHECK_NS 10000000ULL

struct text_key {
	__u64 name, file; /* addresses; 0: there is no file */
	__u64 scope;	  /* for the runtime's use */
	__u32 line;
	__u32 space;
};

struct text_entry {
	__u64 hash; /* hash of all strings; 0: the name is unreadable */
	__u64 checked_ns;
	__u32 code;
	__u32 settled; /* a flag of the runtime; 1: nothing more can be read about the text */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct text_key);
	__type(value, struct text_entry);
} texts __weak SEC(".maps");

#define HASHED_WORDS 12 /* words of a string that are hashed */

/* Returns a hash of the first bytes of a NUL-terminated string, or 0 if it is unreadable. */
static __noinline __u64 text__hash(__u64 address)
{
	__u64 words[HASHED_WORDS] = {}, hash = 1;
	int i;

	if (bpf_probe_read_user_str(words, sizeof(words), (void *)address) < 0)
		return 0;
	for (i = 0; i < HASHED_WORDS; i++)
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ULL + (hash >> 29);
	return hash | 1;
}

static __always_inline void text__copy(char *to, __u64 from, __u8 *kind, __u16 *len)
{
	long bytes = bpf_probe_read_user_str(to, CODE_OBJECT_TEXT_BYTES, (void *)from);

	*kind = bytes > 0 ? CODE_OBJECT_TEXT_UTF8 : 0;
	*len = bytes > 0 ? bytes - 1 : 0;
	if (bytes <= 0)
		count(COUNT_WALK_CODE);
}

/* Returns the number of these strings, with *ret as stored, or 0. If the strings are new or have
 * changed, the caller completes *ret and stores it. If ret->hash is 0, they are unreadable. */
static __always_inline __u32 text__find(const struct text_key *key, __u64 now_ns,
					struct text_entry *ret)
{
	struct text_entry *existing = bpf_map_lookup_elem(&texts, key);
	__u64 hash;

	if (existing && now_ns - existing->checked_ns < TEXT_RECHECK_NS) {
		*ret = *existing;
		return existing->code;
	}
	hash = text__hash(key->name);
	if (!hash) {
		count(COUNT_PROBE_READ);
		return 0;
	}
	if (key->file)
		hash = hash * 31 + text__hash(key->file);
	hash |= 1;
	if (existing && existing->hash == hash) {
		existing->checked_ns = now_ns;
		*ret = *existing;
		return existing->code;
	}
	ret->hash = hash;
	ret->checked_ns = now_ns;
	return 0;
}

#endif
