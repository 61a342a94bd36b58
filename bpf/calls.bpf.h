/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_CALLS_BPF_H
#define BRAID_CALLS_BPF_H

/* The call tree. It counts the calls of all shadow stacks by their callers. */

#include "bpf/scratch.bpf.h"
#include "bpf/shadow.h"

extern const volatile __u32 cfg_calls; /* count and time all calls */
extern const volatile __u32 cfg_nodes; /* size of the two maps below */
extern __u32 call_nodes_used;	       /* number of nodes so far; node numbers begin with 1 */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* user space: cfg_nodes */
	__type(key, struct call_key);
	__type(value, __u32);
} call_nodes __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: cfg_nodes */
	__type(key, __u32);
	__type(value, struct call_stat);
} call_stats __weak SEC(".maps");

/* Returns the limit of node numbers. The last eighth is reserved for nodes without callers. */
static __always_inline __u32 call__limit(const struct call_key *key)
{
	return key->parent == CALL_UNPLACED ? cfg_nodes : cfg_nodes - cfg_nodes / 8;
}

/* Returns the number of the node of @key, which is created if it does not exist; 0: the tree is
 * full. */
static __noinline __u32 call__find(const struct call_key *key)
{
	__u32 *existing = bpf_map_lookup_elem(&call_nodes, key), node;
	struct call_stat *stat;

	if (existing)
		return *existing;
	/* When the tree is full, the counter stops, so that it cannot wrap around. */
	if (call_nodes_used + 1 >= call__limit(key))
		return 0;
	node = __sync_fetch_and_add(&call_nodes_used, 1) + 1;
	stat = bpf_map_lookup_elem(&call_stats, &node);
	if (!stat)
		return 0;
	stat->parent = key->parent;
	stat->space = key->space;
	stat->code = key->code;
	if (!bpf_map_update_elem(&call_nodes, key, &node, BPF_NOEXIST))
		return node;
	stat->code = 0;
	existing = bpf_map_lookup_elem(&call_nodes, key); /* another thread was faster */
	return existing ? *existing : 0;
}

/* Returns the number of the node for calls of @code from node @parent; 0: none. */
__weak __noinline __u32 call__node(struct shadow *shadow, __u32 parent, __u32 code)
{
	struct call_key key = { .parent = parent, .code = code };
	struct shadow_call_cache *cache;
	__u32 node;

	if (!shadow || !code)
		return 0; /* its name could not be read, which has been counted */
	key.space = shadow->space;
	cache = &shadow->call_memos[(parent ^ code * 31) & (SHADOW_CACHES - 1)];
	if (cache->parent == parent && cache->code == code)
		return cache->node;
	node = call__find(&key);
	if (!node) {
		key.parent = CALL_UNPLACED;
		node = call__find(&key);
		count(node ? COUNT_CALL_TREE_FULL : COUNT_CALL_LOST);
		if (!node)
			return 0;
	}
	cache->parent = parent;
	cache->code = code;
	cache->node = node;
	return node;
}

static __always_inline __u32 call__enter(struct shadow *shadow, __u32 parent, __u32 code)
{
	__u32 node = call__node(shadow, parent, code);
	struct call_stat *stat = node ? bpf_map_lookup_elem(&call_stats, &node) : NULL;

	if (stat)
		__sync_fetch_and_add(&stat->calls, 1);
	return node;
}

static __always_inline void call__leave(const struct shadow_entry *entry, int lost, __u64 now_ns)
{
	__u32 node = entry->node;
	struct call_stat *stat = node ? bpf_map_lookup_elem(&call_stats, &node) : NULL;

	if (!stat)
		return;
	__sync_fetch_and_add(&stat->inclusive_ns, now_ns - entry->entered_ns);
	if (entry->flags & ENTRY_SEEDED)
		return;
	if (lost)
		__sync_fetch_and_add(&stat->lost_returns, 1);
	else
		__sync_fetch_and_add(&stat->returns, 1);
}

#endif
