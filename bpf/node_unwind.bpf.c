// SPDX-License-Identifier: GPL-2.0
#include "bpf/node_frames.bpf.h"
#include "bpf/tableless.bpf.h"

/* V8's code has no unwind tables, but keeps frame pointers, without exception: rbp is used for
 * nothing else, so that it always is that of a frame, the current function's or, where that has
 * none (yet), its caller's. So such frames are left by their frame pointers, and here only
 * noted: what lies below the frame pointer tells the function. */

/* The words below the frame pointer. Below the stack pointer is what was left there: the frame is
 * about to be made, or left. It is not there, then. */
static __always_inline int frame__read(struct unwind_state *u, struct node_frame *frame)
{
	__u64 at;
	int i;

	if (!stack__have(u, u->rbp - 8 * NODE_FP_WORDS, 8 * NODE_FP_WORDS, &at)) {
		for (i = 0; i < NODE_FP_WORDS; i++)
			frame->words[i] =
				u->block[(at + NODE_FP_WORDS - 1 - i) & (BLOCK_WORDS - 1)];
		return 0;
	}
	for (i = 0; i < NODE_FP_WORDS; i++) {
		frame->words[i] = 0;
		if (u->rbp - 8 * (i + 1) < u->sp)
			continue;
		if (stack__read(u, u->rbp - 8 * (i + 1)))
			return -1;
		frame->words[i] = u->value;
	}
	return 0;
}

static __always_inline void frame__note(struct unwind_state *u, const struct scratch *scratch,
					struct node_state *state)
{
	struct node_frame *frame = &state->frame;
	__u64 words = (u->rbp - u->sp) / 8;
	int i;

	if (u->rbp & 7 || !words || frame__read(u, frame))
		return;
	u->note.mask = (1U << (words < NODE_FP_WORDS ? words : NODE_FP_WORDS)) - 1;
	for (i = 0; i < NODE_FP_WORDS; i++)
		u->note.words[i] = frame->words[i];
	if (!NODE_IS_SMI(frame->words[NODE_FP_CONTEXT / 8 - 1]) &&
	    !frame->words[NODE_FP_FUNCTION / 8 - 1])
		return;
	frame->pc = u->pc - !u->exact;
	frame->fp = u->rbp;
	frame->sp = u->leaf ? u->sp : 0;
	frame->in_file = u->mapping.n_pages != 0;
	frame__key(u, scratch, state);
}

/* Is it code that V8 has made, before it was linked or while it runs? */
static __always_inline int is_of_v8(const struct unwind_state *u, const struct node_proc_rec *proc)
{
	if (u->pc < u->mapping.start || u->pc >= u->mapping.end)
		return 0; /* --unwind fp: who knows */
	return !u->mapping.n_pages || !proc->blob_bytes ||
	       u->pc - u->mapping.bias - proc->blob_start < proc->blob_bytes;
}

/* Whose sample it is. */
static __always_inline void state__begin(struct node_state *state, const struct scratch *scratch)
{
	__u32 space = scratch->proc.space;
	const struct node_proc_rec *proc = bpf_map_lookup_elem(&node_procs, &space);

	state->time_ns = scratch->sample.time_ns;
	state->is_known = !!proc;
	if (state->space != space) {
		state->space = space;
		state->maps = (struct node_maps) {};
	}
	if (proc)
		state->proc = *proc;
}

/* bpf/tableless.bpf.h */
__noinline int node__tableless(struct unwind_state *u)
{
	const struct scratch *scratch = scratch__get();
	struct node_state *state = node_state__get();

	if (!u || !scratch || !state)
		return 0;
	if (!u->n || state->time_ns != scratch->sample.time_ns)
		state__begin(state, scratch);
	if (!state->is_known || u->rbp_lost || u->rbp < u->sp || !is_of_v8(u, &state->proc))
		return 0;
	frame__note(u, scratch, state);
	return TABLELESS_POINTER;
}
