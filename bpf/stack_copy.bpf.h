/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_STACK_COPY_BPF_H
#define BRAID_STACK_COPY_BPF_H

/* Copies of the user stack, for libunwind in user space if the tables fail. */

#include "bpf/scratch.bpf.h"

extern const volatile __u32 cfg_unwind;

struct copy_slot {
	__u64 window_ns; /* start of the window that `n` counts in */
	__u32 n;
	__u32 pad;
	struct rec_stack rec;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: number of slots */
	__type(key, __u32);
	__type(value, struct copy_slot);
} copy_slots SEC(".maps");

/* In an epilogue, rules refer to registers that were popped already, in the red zone. The page
 * below that of the stack pointer may not exist. */
#define RED_ZONE_BYTES 128

static __always_inline __u64 copy_start(__u64 sp)
{
	__u64 start = sp - RED_ZONE_BYTES, page = sp & ~(PAGE_BYTES - 1ULL);

	return start < page ? page : start;
}

static long copy_page(__u32 index, void *unused)
{
	__u32 key = slot__key(), size, used;
	struct copy_slot *slot = bpf_map_lookup_elem(&copy_slots, &key);
	__u64 from;

	(void)index, (void)unused;
	if (!slot)
		return 1;
	used = slot->rec.size;
	if (used > STACK_COPY_BYTES - PAGE_BYTES)
		return 1;
	from = slot->rec.start + used;
	size = PAGE_BYTES - (from & (PAGE_BYTES - 1));
	if (bpf_probe_read_user(slot->rec.data + used, size, (void *)from))
		return 1; /* the stack ends here */
	slot->rec.size = used + size;
	return 0;
}

/* Returns 1 if the ring has space for a copy. A copy is fifty times as large as the other records,
 * so the second half of the ring is reserved for those. The second quarter is reserved for
 * stacks that are cut because user space is late, and for UNWIND_MODE_COPY. User space can unwind
 * late copies once it has the mappings. */
static __always_inline int has_room_for_copies(int stop)
{
	int late = stop == COUNT_NO_MAPPINGS || stop == COUNT_UNMAPPED_PC ||
		   stop == COUNT_TORN_MAPPINGS || stop == COUNT_ENDED_MAPPING ||
		   cfg_unwind == UNWIND_MODE_COPY;

	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) <=
	       bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / (late ? 2 : 4);
}

static __noinline int copy_stack(struct scratch *scratch)
{
	__u32 key = slot__key(), size;
	struct copy_slot *slot = bpf_map_lookup_elem(&copy_slots, &key);
	struct rec_sample *sample = &scratch->sample;
	int starting = sample->stop == COUNT_NO_MAPPINGS;

	if (!slot)
		return 0;
	if (cfg_unwind != UNWIND_MODE_COPY) {
		if (sample->time_ns - slot->window_ns > COPIES_WINDOW_NS) {
			slot->window_ns = sample->time_ns;
			slot->n = 0;
		}
		if (slot->n++ >= (starting ? START_COPIES_MAX : AUTO_COPIES_MAX))
			return 0;
	}
	if (!has_room_for_copies(sample->stop)) {
		count(COUNT_COPY_FAILED);
		return 0;
	}
	slot->rec.type = REC_STACK;
	slot->rec.tgid = sample->tgid;
	slot->rec.tid = sample->tid;
	slot->rec.time_ns = sample->time_ns;
	slot->rec.size = 0;
	__builtin_memcpy(slot->rec.regs, scratch->interrupted, sizeof(slot->rec.regs));
	slot->rec.start = copy_start(slot->rec.regs[UNWIND_REG_RSP]);
	bpf_loop(STACK_COPY_BYTES / PAGE_BYTES + 1, copy_page, NULL, 0);
	size = slot->rec.size;
	if (size > STACK_COPY_BYTES)
		return 0;
	if (bpf_ringbuf_output(&ring, &slot->rec, REC_STACK_HEADER + size, ring__flags())) {
		count(COUNT_COPY_FAILED);
		return 0;
	}
	return 1;
}

#endif
