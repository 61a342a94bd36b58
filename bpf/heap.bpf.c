// SPDX-License-Identifier: GPL-2.0
#include "bpf/sampler.bpf.h"

#include "bpf/alloc_sample.bpf.h"
#include "bpf/heap.h"
#include "bpf/outstanding.bpf.h"
#include "bpf/probe.bpf.h"

/* The events alloc:usdt and outstanding:usdt: an allocator in the process samples by bytes, and
 * passes the probe otel_memory:alloc(address, size, weight) for each sampled allocation. It passes
 * otel_memory:free(address) when such an allocation is freed. The allocator belongs to the target,
 * so its values may be anything. */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: HEAP_SITES_MAX where it is used */
	__type(key, __u32);
	__type(value, struct heap_site);
} heap_sites __weak SEC(".maps");

static __always_inline const struct heap_site *heap__site(struct pt_regs *ctx)
{
	__u32 number = bpf_get_attach_cookie(ctx);
	const struct heap_site *site = bpf_map_lookup_elem(&heap_sites, &number);

	if (!site)
		count(COUNT_PROBE_UNKNOWN);
	return site;
}

/* Records that @sample is of the allocation at @address. Its value follows at the end. */
static __always_inline void heap__hold(struct rec_sample *sample, __u64 address)
{
	struct live_alloc_key key;
	struct live_alloc_rec rec;

	if (!live_alloc__key(&key, address))
		return;
	live_alloc__replace(&key);
	rec = live_alloc__begin(sample);
	live_alloc__add(&key, &rec);
}

SEC("?uprobe")
int heap_on_alloc(struct pt_regs *ctx)
{
	const struct heap_site *site = heap__site(ctx);
	__u64 address, bytes, weight;
	struct scratch *scratch;

	if (!site)
		return 0;
	address = probe__arg(ctx, &site->args[HEAP_ADDRESS]);
	bytes = probe__arg(ctx, &site->args[HEAP_BYTES]);
	weight = probe__arg(ctx, &site->args[HEAP_WEIGHT]);
	if (bytes - 1 >= ALLOC_BYTES_MAX || weight < bytes || weight - bytes > ALLOC_PERIOD_MAX) {
		count(COUNT_HEAP_VALUES);
		return 0;
	}
	scratch = alloc_begin(bytes, weight, bpf_ktime_get_ns());
	if (!scratch)
		return 0;
	if (cfg_outstanding)
		heap__hold(&scratch->sample, address);
	sample__unwind_from(ctx, scratch);
	return 0;
}

SEC("?uprobe")
int heap_on_free(struct pt_regs *ctx)
{
	const struct heap_site *site = heap__site(ctx);

	if (site)
		live_alloc__freed(probe__arg(ctx, &site->args[HEAP_ADDRESS]));
	return 0;
}
