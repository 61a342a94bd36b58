// SPDX-License-Identifier: GPL-2.0
#include <asm/ptrace.h>
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

/* What `braid probes` attaches to see whether probes fire. The '?' leaves these programs out unless
 * they are asked for. */

/* Hits by attach cookie. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1); /* user space: number of sites */
	__type(key, __u32);
	__type(value, __u64);
} probe_hits SEC(".maps");

SEC("?uprobe")
int count_hit(struct pt_regs *ctx)
{
	__u32 site = bpf_get_attach_cookie(ctx);
	__u64 *hits = bpf_map_lookup_elem(&probe_hits, &site);

	/* Atomic, as a task may be preempted here by one that hits the same site on this CPU. */
	if (hits)
		__sync_fetch_and_add(hits, 1);
	return 0;
}

/* Attached for the sake of a semaphore only. */
SEC("?uprobe")
int nothing(struct pt_regs *ctx)
{
	return 0;
}
