// SPDX-License-Identifier: GPL-2.0
#include "bpf/runtime_frames.bpf.h"

/* Adds the JavaScript frames that bpf/node_unwind.bpf.c has identified. */
SEC("?perf_event")
int walk_node(void *ctx)
{
	struct scratch *scratch = scratch__get();

	if (!scratch) {
		scratch__abandon();
		return 0;
	}
	runtime_frames__walk(scratch, WALKER_NODE);
	scratch__next(ctx, scratch);
	return 0;
}
