/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_PROBE_HITS_BPF_H
#define BRAID_PROBE_HITS_BPF_H

/* The number of hits of each probe site. */

/* Hits by attach cookie. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1); /* user space: number of sites */
	__type(key, __u32);
	__type(value, __u64);
} probe_hits __weak SEC(".maps");

static __always_inline void probe__hit(__u32 site)
{
	__u64 *hits = bpf_map_lookup_elem(&probe_hits, &site);

	/* Atomic, because a task may be preempted here by one that hits the same site on this
	 * CPU. */
	if (hits)
		__sync_fetch_and_add(hits, 1);
}

#endif
