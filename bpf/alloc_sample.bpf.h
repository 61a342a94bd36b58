/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_ALLOC_SAMPLE_BPF_H
#define BRAID_ALLOC_SAMPLE_BPF_H

#include "bpf/sampler.bpf.h"

/* Begins the sample of a call for @bytes that represents @total bytes. */
static __always_inline struct scratch *alloc_begin(__u64 bytes, __u64 total, __u64 now_ns)
{
	__u32 event = cfg_numbers[EVENT_ALLOC];
	struct budget_rec *budget = budget__here();
	struct worth worth = { bytes, 1, total };

	worth.weight = budget__weight(budget ? budget__of(budget, event) : NULL, bytes, total);
	return sample__begin_of(event, now_ns, &worth);
}

#endif
