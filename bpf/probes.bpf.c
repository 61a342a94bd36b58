// SPDX-License-Identifier: GPL-2.0
#include <asm/ptrace.h>
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#include "bpf/probe_hits.bpf.h"

/* What `braid probes` attaches to see whether probes fire. The '?' leaves these programs out unless
 * they are asked for. */

SEC("?uprobe")
int count_hit(struct pt_regs *ctx)
{
	probe__hit(bpf_get_attach_cookie(ctx));
	return 0;
}

/* Attached for the sake of a semaphore only. */
SEC("?uprobe")
int nothing(struct pt_regs *ctx)
{
	return 0;
}
