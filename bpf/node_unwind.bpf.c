// SPDX-License-Identifier: GPL-2.0
#include "bpf/node_frames.bpf.h"
#include "bpf/tableless.bpf.h"

/* V8's code has no unwind tables, but always has frame pointers. rbp has no other use. It always is
 * the frame pointer of the current function's frame or, if that function has no frame (yet), of its
 * caller's. So such frames are unwound by their frame pointers. This file only identifies their
 * functions, by the words below the frame pointer.
 *
 * This holds for V8's code only. Addons make code, too, which may leave rbp unchanged from the
 * innermost frame of V8. So rbp does not show whether V8 or an addon made the code at a pc. These
 * facts do:
 *
 *   - Builtin functions lie in a range of V8's file, or of another mapping of that file.
 *   - Compiled JavaScript lies in an object of V8's heap, with a header before it.
 *   - A WebAssembly frame has its instance, which has the address of its jump table. V8 places this
 *     table at the start of the memory of the instance's code.
 *
 * The generic unwinder handles other code. */

/* Reads the words below the frame pointer. Words below the stack pointer are stale and read as
 * 0: the frame is being made or left. Returns 0 or -1. */
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

#define WASM_MARKER	  (4 << 1) /* v8dbg_frametype_WasmFrame, the same in all versions; a Smi */
#define WASM_PARTS	  4 /* parts of an instance that are searched for the jump table's address */
#define WASM_BYTES_MAX	  (1ULL << 30) /* limit for the code of an instance */
#define FRAME_MARKERS_MAX 64

/* Returns true if the object is one of V8's heap: its Map has the Map of Maps. */
static __always_inline int object__is(const struct node_proc_rec *proc, __u64 object)
{
	__u64 map = 0, map_map = 0;
	__u16 type = 0;

	return (object & NODE_TAG_MASK) == NODE_TAG &&
	       !node__read(&map, sizeof(map), object - NODE_TAG) &&
	       (map & NODE_TAG_MASK) == NODE_TAG &&
	       !node__read(&map_map, sizeof(map_map), map - NODE_TAG) &&
	       (map_map & NODE_TAG_MASK) == NODE_TAG &&
	       !node__read(&type, sizeof(type), map_map - NODE_TAG + proc->map_type) &&
	       type == proc->type_map;
}

/* Returns true if the frame at rbp belongs to WebAssembly with its code at the pc. */
static __always_inline int pc__is_wasm(const struct unwind_state *u, struct node_state *state)
{
	__u64 instance, start = u->mapping.start;
	int part, i;

	if (u->rbp & 7 || u->rbp - u->sp < NODE_FP_FUNCTION ||
	    frame__word(&state->frame, NODE_FP_CONTEXT) != WASM_MARKER)
		return 0;
	instance = frame__word(&state->frame, NODE_FP_FUNCTION);
	if (!object__is(&state->proc, instance))
		return 0;
	for (part = 0; part < WASM_PARTS; part++) {
		if (node__read(state->block, sizeof(state->code),
			       instance - NODE_TAG + part * sizeof(state->code)))
			return 0;
		for (i = 0; i < NODE_CODE_BYTES / 8; i++)
			if (state->block[i] >= start && state->block[i] < u->pc &&
			    u->pc - state->block[i] < WASM_BYTES_MAX)
				return 1;
	}
	return 0;
}

/* Returns true if the words below rbp are those of a frame of V8. */
static __always_inline int frame__is_of_v8(const struct unwind_state *u, struct node_state *state)
{
	__u64 context = frame__word(&state->frame, NODE_FP_CONTEXT);

	if (u->rbp & 7 || u->rbp - u->sp < NODE_FP_FUNCTION)
		return 0;
	if (NODE_IS_SMI(context))
		return context && context < 2 * FRAME_MARKERS_MAX;
	return object__is(&state->proc, context) &&
	       !function__read(state, &state->proc, frame__word(&state->frame, NODE_FP_FUNCTION));
}

/* Returns TABLELESS_* flags if V8 made the code at the pc, at build time or at run time; else 0.
 * In a file whose symbols are stripped, the range of V8's code is unknown. */
static __always_inline int whose__is(struct unwind_state *u, struct node_state *state)
{
	const struct node_proc_rec *proc = &state->proc;

	if (u->pc < u->mapping.start || u->pc >= u->mapping.end)
		return 0; /* --unwind fp: unknown */
	if (u->mapping.n_pages && proc->blob_bytes)
		return u->pc - u->mapping.bias - proc->blob_start < proc->blob_bytes
			       ? TABLELESS_POINTER
			       : 0;
	if (!u->mapping.n_pages && code__find(state, proc, u->pc - !u->exact))
		return TABLELESS_POINTER;
	if (frame__read(u, &state->frame))
		return 0;
	if (u->mapping.n_pages)
		return frame__is_of_v8(u, state) ? TABLELESS_POINTER | TABLELESS_INFERRED : 0;
	return pc__is_wasm(u, state) ? TABLELESS_POINTER : 0;
}

/* Begins a sample: looks up the record of its process. */
static __always_inline void state__begin(struct node_state *state, const struct scratch *scratch)
{
	__u32 space = scratch->proc.space;
	const struct node_proc_rec *proc = bpf_map_lookup_elem(&node_procs, &space);

	state->time_ns = scratch->sample.time_ns;
	state->is_valid = !!proc;
	if (state->space != space) {
		state->space = space;
		state->maps = (struct node_maps) {};
	}
	if (!proc)
		return;
	state->proc = *proc;
	state->replaces = process__replaces(state->time_ns, proc->replaced_ns);
}

/* As described in bpf/tableless.bpf.h. */
__noinline int node__tableless(struct unwind_state *u)
{
	const struct scratch *scratch = scratch__get();
	struct node_state *state = node_state__get();
	int outcome;

	if (!u || !scratch || !state)
		return 0;
	if (!u->n || state->time_ns != scratch->sample.time_ns)
		state__begin(state, scratch);
	if (!state->is_valid || u->rbp_lost || u->rbp < u->sp)
		return 0;
	outcome = whose__is(u, state);
	if (outcome)
		frame__note(u, scratch, state);
	return outcome;
}
