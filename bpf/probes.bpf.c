// SPDX-License-Identifier: GPL-2.0
#include <asm/ptrace.h>
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#include "bpf/probe_hits.bpf.h"

/* What `braid probes` attaches to see whether probes fire. The '?' leaves these programs out unless
 * they are asked for. */

/* Hits count between two moments that are the same for all sites, however long it takes to attach
 * one after the other and to read one count after the other. */
volatile __u32 hits_count = 0;

SEC("?uprobe")
int count_hit(struct pt_regs *ctx)
{
	if (hits_count)
		probe__hit(bpf_get_attach_cookie(ctx));
	return 0;
}

/* Attached for the sake of a semaphore only. */
SEC("?uprobe")
int nothing(struct pt_regs *ctx)
{
	return 0;
}
