// SPDX-License-Identifier: GPL-2.0
#include "bpf/node_state.bpf.h"
#include "bpf/tableless.bpf.h"

/* V8's code has no unwind tables, but keeps frame pointers, without exception: rbp is used for
 * nothing else, so that it always is that of a frame, the current function's or, where that has
 * none (yet), its caller's. So such frames are left as any code that no table covers, and here only
 * noted, for the walker, bpf/node.bpf.c: what lies below the frame pointer tells the function. */

static __always_inline int frame__note(struct unwind_state *u, struct node_frame *frame)
{
	int i;

	/* Below the stack pointer is what was left there: the frame is about to be made, or left.
	 * It is not there, then. */
	if (u->rbp - u->sp < NODE_FP_CONTEXT)
		return -1;
	for (i = 0; i < NODE_FP_WORDS; i++) {
		frame->words[i] = 0;
		if (u->rbp - 8 * (i + 1) < u->sp)
			continue;
		if (stack__read(u, u->rbp - 8 * (i + 1)))
			return -1;
		frame->words[i] = u->value;
	}
	if (!NODE_IS_SMI(frame->words[NODE_FP_CONTEXT / 8 - 1]) &&
	    !frame->words[NODE_FP_FUNCTION / 8 - 1])
		return -1;
	frame->pc = u->pc - !u->exact;
	frame->fp = u->rbp;
	frame->sp = u->leaf ? u->sp : 0;
	frame->in_file = u->mapping.n_pages != 0;
	return 0;
}

/* Is it code that V8 has made, before it was linked or while it runs? */
static __always_inline int is_of_v8(const struct unwind_state *u, const struct node_proc_rec *proc)
{
	if (u->pc < u->mapping.start || u->pc >= u->mapping.end)
		return 0; /* --unwind fp: who knows */
	return !u->mapping.n_pages || !proc->blob_bytes ||
	       u->pc - u->mapping.bias - proc->blob_start < proc->blob_bytes;
}

/* bpf/tableless.bpf.h */
__noinline int node__tableless(struct unwind_state *u)
{
	const struct scratch *scratch = scratch__get();
	const struct node_proc_rec *proc;
	struct node_state *state;
	__u32 space;

	if (!u || !scratch)
		return 0;
	space = scratch->proc.space;
	state = node_state__get();
	proc = bpf_map_lookup_elem(&node_procs, &space);
	if (!state || !proc)
		return 0;
	if (!u->n || state->time_ns != scratch->sample.time_ns) {
		state->time_ns = scratch->sample.time_ns;
		state->n = 0;
	}
	if (u->rbp_lost || u->rbp < u->sp || !is_of_v8(u, proc) || state->n >= NATIVE_FRAMES_MAX)
		return 0;
	if (!frame__note(u, &state->frames[state->n & (NATIVE_FRAMES_MAX - 1)]))
		state->n++;
	return 0;
}
