/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_NODE_FRAMES_BPF_H
#define BRAID_NODE_FRAMES_BPF_H

#include "bpf/node_code.bpf.h"
#include "bpf/node_text.bpf.h"
#include "bpf/tableless.bpf.h"

/* Identifies a V8 frame by the words below its frame pointer, and numbers its code. A function is
 * identified by its SharedFunctionInfo, and by the objects that this refers to: its name and scope,
 * and its script. V8's numbers of the script and of the function in it are used, too. Compiled code
 * is identified by its Code and the address of its instructions, too. The numbers of a new isolate
 * start again, so a hash of the texts is part of the identity. */

static __always_inline int code__announce(const struct node_code *key,
					  const struct scratch *scratch, __u32 number, __u32 kind)
{
	struct {
		__u64 header[REC_CODE_OBJECT_HEADER / 8];
		struct node_code code;
	} message = { .code = *key };
	struct rec_code_object *rec = (void *)message.header;

	rec->type = REC_CODE_OBJECT;
	rec->code = number;
	rec->tgid = scratch->sample.tgid;
	rec->walker = WALKER_NODE;
	rec->table_format = kind;
	/* Wakes user space, which must read more data while the process runs and the function
	 * exists. */
	return bpf_ringbuf_output(&ring, &message, sizeof(message), BPF_RB_FORCE_WAKEUP);
}

/* Stores the number of the code in state->key, and sends it to user space with its first use.
 * Returns -1 if that fails; the next sample tries again. */
static __noinline int code__number(const struct node_state *state, const struct scratch *scratch,
				   __u32 kind, __u32 *ret_number)
{
	const __u32 *existing = bpf_map_lookup_elem(&node_codes, &state->key);

	*ret_number = existing ? *existing : code_object__new();
	if (existing)
		return 0;
	return code_object__store(&node_codes, &state->key,
				  !code__announce(&state->key, scratch, *ret_number, kind),
				  ret_number);
}

static __always_inline __u64 sfi__word(const struct node_state *state, __u32 offset)
{
	return offset <= NODE_SFI_BYTES - 8 ? *(__u64 *)((char *)state->sfi + offset) : 0;
}

static __always_inline __u64 frame__word(const struct node_frame *frame, __u32 below)
{
	return frame->words[(below / 8 - 1) & 7];
}

/* Reads the SharedFunctionInfo of the frame's function into state->sfi and state->key. */
__noinline int function__read(struct node_state *state, const struct node_proc_rec *proc,
			      __u64 function)
{
	__u64 sfi = 0;

	if (!state || !proc || (function & NODE_TAG_MASK) != NODE_TAG ||
	    node__read(&sfi, sizeof(sfi), function - NODE_TAG + proc->function_shared) ||
	    (sfi & NODE_TAG_MASK) != NODE_TAG ||
	    node__read(state->sfi, sizeof(state->sfi), sfi - NODE_TAG) ||
	    !map__is(proc, state->sfi[0], proc->type_sfi, &state->maps.sfi))
		return -1;
	state->key.function = (struct node_function_id) {
		.sfi = sfi,
		.name = sfi__word(state, proc->sfi_name),
		.script = sfi__word(state, proc->sfi_script),
		.literal = sfi__word(state, proc->sfi_literal & ~7) >> 8 * (proc->sfi_literal & 4),
	};
	return 0;
}

/* Returns 1 if the object is a Script. */
static __always_inline int script__is(struct node_state *state, const struct node_proc_rec *proc,
				      __u64 object)
{
	__u64 map = 0;
	__u16 type = 0;

	if ((object & NODE_TAG_MASK) != NODE_TAG ||
	    node__read(&map, sizeof(map), object - NODE_TAG))
		return 0;
	if (state->maps.script)
		return map == state->maps.script;
	if ((map & NODE_TAG_MASK) != NODE_TAG ||
	    node__read(&type, sizeof(type), map - NODE_TAG + proc->map_type) ||
	    type != proc->type_script)
		return 0;
	state->maps.script = map;
	return 1;
}

/* Adds the identity of the script of the function in state->key. */
__noinline int function__read_script(struct node_state *state, const struct node_proc_rec *proc)
{
	struct node_function_id *id;

	if (!state || !proc)
		return -1;
	id = &state->key.function;
	if (!script__is(state, proc, id->script))
		return 0;
	if (node__read(&id->script_id, sizeof(id->script_id),
		       id->script - NODE_TAG + proc->script_id) ||
	    node__read(&id->source, sizeof(id->source),
		       id->script - NODE_TAG + proc->script_source))
		return -1;
	return 0;
}

/* Returns 1 if @object is an array of bytecodes. A frame with one at this place is not
 * optimized. */
__noinline int bytecodes__is(struct node_state *state, const struct node_proc_rec *proc,
			     __u64 object)
{
	__u64 map = 0;

	if (!state || !proc || (object & NODE_TAG_MASK) != NODE_TAG ||
	    node__read(&map, sizeof(map), object - NODE_TAG))
		return 0;
	return map__is(proc, map, proc->type_bytecodes, &state->maps.bytecodes);
}

/* Returns 1 if @pc may be a return address, because a call ends there: call rel32; call r64; call
 * [r64 + disp] with 8 or 32 bits of it. */
static __always_inline int address__is_returned_to(__u64 pc)
{
	__u8 code[8];

	return !node__read(code, sizeof(code), pc - sizeof(code)) &&
	       (code[3] == 0xe8 || code[6] == 0xff || code[5] == 0xff || code[2] == 0xff);
}

/* Returns 1 if @pc is in code of a compiler for JavaScript, which is then in state->key. */
__noinline int address__is_compiled(struct node_state *state, const struct node_proc_rec *proc,
				    __u64 pc)
{
	if (!state || !proc || !code__find(state, proc, pc))
		return 0;
	return (code__u32(state, proc->code_flags) & proc->kind_mask) >= proc->kind_baseline;
}

#define TOP_WORDS 2 /* stack words that may be a frameless function's return address */

/* Returns the address in compiled code of the frame's function, or 0. A function that was
 * interrupted before it made a frame, or that makes none, uses its caller's frame. Its own return
 * address is then one of the topmost words of the stack. */
__noinline __u64 frame__compiled(struct node_state *state, const struct node_proc_rec *proc,
				 const struct node_frame *frame)
{
	__u64 top[TOP_WORDS];
	int i;

	if (!state || !proc || !frame)
		return 0;
	if (!frame->in_file && address__is_compiled(state, proc, frame->pc))
		return frame->pc;
	if (!frame->sp || node__read(top, sizeof(top), frame->sp))
		return 0;
	for (i = 0; i < TOP_WORDS; i++)
		if (address__is_returned_to(top[i]) &&
		    address__is_compiled(state, proc, top[i] - 1))
			return top[i] - 1;
	return 0;
}

/* Returns 1 if the frame is interpreted. Code in V8's own file, or in a copy of it, is the
 * interpreter or a builtin function. Code that was entered in the middle of a loop has remains of
 * an interpreted frame. */
static __always_inline int frame__is_interpreted(struct node_state *state,
						 const struct node_proc_rec *proc,
						 const struct node_frame *frame,
						 const struct node_cache *words)
{
	return !NODE_IS_SMI(sfi__word(state, proc->sfi_data)) &&
	       NODE_IS_SMI(frame__word(frame, NODE_FP_BYTECODE_AT)) &&
	       bytecodes__is(state, proc, words->bytecodes) &&
	       (frame->in_file || !address__is_compiled(state, proc, frame->pc));
}

static __always_inline void code__forget(struct node_state *state)
{
	state->key.code = state->key.deopt = state->key.start = 0;
	state->key.size = 0;
}

/* Returns a hash of state->key without its texts, which is never 0. */
static __always_inline __u64 key__hash(const struct node_state *state)
{
	const struct node_function_id *id = &state->key.function;
	__u64 hash = node_hash__add(id->sfi, id->name);

	hash = node_hash__add(hash, id->script);
	hash = node_hash__add(hash, id->script_id);
	hash = node_hash__add(hash, id->source);
	hash = node_hash__add(hash, id->literal);
	hash = node_hash__add(hash, state->key.code);
	hash = node_hash__add(hash, state->key.deopt);
	hash = node_hash__add(hash, state->key.start);
	return node_hash__add(hash, state->key.size) | 1;
}

/* A frame's kind and index; state->key has the rest. */
struct node_found {
	__u32 kind, index;
};

static __always_inline struct node_found frame__identify(struct node_state *state,
							 const struct node_proc_rec *proc,
							 const struct node_frame *frame,
							 const struct node_cache *words)
{
	struct node_found found = { NODE_UNKNOWN, NODE_NO_OFFSET }, *ret = &found;
	__u64 pc = 0;

	state->key = (struct node_code) { .space = state->space };
	if (NODE_IS_SMI(words->context)) {
		ret->kind = NODE_STUB;
		ret->index = words->context >> 1;
	} else if (function__read(state, proc, words->function)) {
		count(COUNT_WALK_CODE);
		state->key = (struct node_code) { .size = NODE_UNKNOWN, .space = state->space };
	} else if (frame->in_file && proc->blob_bytes &&
		   NODE_IS_SMI(sfi__word(state, proc->sfi_data))) {
		ret->kind = NODE_BUILTIN;
	} else if (function__read_script(state, proc)) {
		count(COUNT_WALK_CODE);
		state->key = (struct node_code) { .size = NODE_UNKNOWN, .space = state->space };
	} else if (frame__is_interpreted(state, proc, frame, words)) {
		ret->kind = NODE_FUNCTION;
		ret->index = 0; /* the frame contains the offset */
	} else {
		pc = frame__compiled(state, proc, frame);
		if (!pc)
			code__forget(state);
		ret->kind = pc ? NODE_CODE : NODE_FUNCTION;
		ret->index = pc ? pc - state->key.start : NODE_NO_OFFSET;
	}
	return found;
}

static __always_inline void state__note_replaced(struct node_state *state)
{
	struct node_proc_rec *proc = bpf_map_lookup_elem(&node_procs, &state->space);

	state->replaces = 1;
	if (proc)
		proc->replaced_ns = state->time_ns;
}

/* Sets kind, index and number of the frame whose words are in @cache. @same: these words are those
 * of the last check. */
static __always_inline void frame__resolve(const struct scratch *scratch, struct node_state *state,
					   const struct node_frame *frame, struct node_cache *cache,
					   int same)
{
	struct node_found found = frame__identify(state, &state->proc, frame, cache);
	__u64 glance = key__hash(state) + found.kind;
	__u32 number = 0;

	cache->checked_ns = state->time_ns;
	if (same && glance == cache->glance) {
		cache->index = found.index;
		return;
	}
	if (same)
		state__note_replaced(state);
	cache->kind = found.kind;
	cache->index = found.index;
	cache->glance = glance;
	cache->since_ns = state->time_ns;
	if (found.kind == NODE_FUNCTION || found.kind == NODE_CODE)
		function__read_texts(state, &state->proc);
	if (found.kind != NODE_BUILTIN && code__number(state, scratch, found.kind, &number))
		cache->glance = cache->checked_ns = 0;
	cache->number = number;
}

static __always_inline struct node_cache *cache__at(struct node_state *state,
						    const struct node_frame *frame)
{
	__u64 hash =
		(frame->fp + (frame->pc << 20)) * 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio */

	return &state->caches[hash >> (64 - NODE_CACHES_LOG2)];
}

/* Returns 1 if the frame has the words of the cached one. It may still belong to another call of
 * another function. */
static __always_inline int cache__is(const struct node_cache *cache, const struct node_state *state,
				     const struct node_frame *frame)
{
	return cache->pc == frame->pc && cache->fp == frame->fp &&
	       cache->context == frame__word(frame, NODE_FP_CONTEXT) &&
	       cache->function == frame__word(frame, NODE_FP_FUNCTION) &&
	       cache->bytecodes == frame__word(frame, NODE_FP_BYTECODES) &&
	       cache->space == state->space;
}

/* Returns 1 if the cached function is at least CODE_OBJECT_OLD_NS old, and the process has replaced
 * no function recently. */
static __always_inline int cache__is_old(const struct node_cache *cache,
					 const struct node_state *state)
{
	return !state->replaces && cache->checked_ns - cache->since_ns >= CODE_OBJECT_OLD_NS;
}

/* Returns 1 if the cached result for this frame need not be checked again. A frame whose context is
 * a Smi is determined by its words alone. */
static __always_inline int cache__is_fresh(const struct node_cache *cache,
					   const struct node_state *state)
{
	return cache->checked_ns == state->time_ns ||
	       ((NODE_IS_SMI(cache->context) || cache__is_old(cache, state)) &&
		state->time_ns - cache->checked_ns < NOTE_RECHECK_NS);
}

/* Identifies the frame in state->frame, and fills its note. */
static __always_inline void frame__key(struct unwind_state *u, const struct scratch *scratch,
				       struct node_state *state)
{
	const struct node_frame *frame = &state->frame;
	struct node_cache *cache;
	__u64 offset;
	__u32 index;
	int same;

	if (NODE_IS_SMI(frame__word(frame, NODE_FP_CONTEXT)) && frame->in_file)
		return; /* V8's own code, which has symbols */
	cache = cache__at(state, frame);
	same = cache__is(cache, state, frame) && cache->glance;
	if (!same || !cache__is_fresh(cache, state)) {
		if (!same)
			*cache = (struct node_cache) {
				.pc = frame->pc,
				.fp = frame->fp,
				.context = frame__word(frame, NODE_FP_CONTEXT),
				.function = frame__word(frame, NODE_FP_FUNCTION),
				.bytecodes = frame__word(frame, NODE_FP_BYTECODES),
				.space = state->space
			};
		frame__resolve(scratch, state, frame, cache, same);
	}
	note__is_of(u, cache->checked_ns);
	u->note.brief = !NODE_IS_SMI(cache->context) && !cache__is_old(cache, state);
	if (cache->kind == NODE_BUILTIN)
		return;
	offset = frame__word(frame, NODE_FP_BYTECODE_AT);
	index = cache->index;
	if (cache->kind == NODE_FUNCTION && index != NODE_NO_OFFSET)
		index = NODE_IS_SMI(offset) ? NODE_SMI(offset) : NODE_NO_OFFSET;
	u->note.by_rbp = cache->kind != NODE_CODE || frame->in_file;
	u->note.walker = WALKER_NODE;
	u->note.key = FRAME_KEY(cache->number, index);
}

#endif
