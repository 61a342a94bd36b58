// SPDX-License-Identifier: GPL-2.0
#include "bpf/noted.bpf.h"

/* bpf/node_unwind.bpf.c has told what JavaScript's frames are. */
SEC("?perf_event")
int walk_node(void *ctx)
{
	struct scratch *scratch = scratch__get();

	if (!scratch) {
		scratch__abandon();
		return 0;
	}
	noted__walk(scratch, WALKER_NODE);
	scratch__next(ctx, scratch);
	return 0;
}
