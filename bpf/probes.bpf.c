// SPDX-License-Identifier: GPL-2.0
#include <asm/ptrace.h>
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#include "bpf/probe_hits.bpf.h"

/* Programs that `braid probes` attaches to check whether probes fire. The '?' leaves them out
 * unless they are requested. */

/* Enables counting between two moments that are the same for all sites. Attaching one site after
 * the other, and reading one count after the other, takes time. */
volatile __u32 hits_count = 0;

SEC("?uprobe")
int count_hit(struct pt_regs *ctx)
{
	if (hits_count)
		probe__hit(bpf_get_attach_cookie(ctx));
	return 0;
}

/* Attached only for the sake of a semaphore. */
SEC("?uprobe")
int nothing(struct pt_regs *ctx)
{
	return 0;
}
