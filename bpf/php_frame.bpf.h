/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_PHP_FRAME_BPF_H
#define BRAID_PHP_FRAME_BPF_H

#include "bpf/php_code.bpf.h"

/* The position of a walk in PHP's frames, reading frames in blocks, and a cache of functions and
 * lines per slot. */

#define FRAME_BYTES	  (FRAME_WORDS * 8)
#define FRAME_BLOCK_WORDS 128
#define FRAME_BLOCK_BYTES (FRAME_BLOCK_WORDS * 8)
#define PAGE_BYTES	  4096

/* Maximum number of nested generators that delegate to one another. */
#define DELEGATES_MAX 16

/* A cached function. Another function may soon take the memory of one written in PHP (closures,
 * included files). An entry is valid only if the frame's current opline lies in the entry's range
 * of operations. Functions written in C stay in place, except copies made for a call, which are not
 * cached. */
struct php_slot {
	__u64 function;	   /* address: zend_function */
	__u64 from, bytes; /* range of its operations; bytes 0: written in C */
	__u64 opline;	   /* address of the last operation of a sample ... */
	struct php_op op;  /* ... and itself */
	__u32 code;	   /* as in rec_code_object; 0: the slot is free */
	__u64 since_ns, checked_ns;
	__u32 space;
	__u32 pad;
};
#define PHP_SLOTS_LOG2 11
#define PHP_SLOTS      (1 << PHP_SLOTS_LOG2)

struct php_state {
	struct php_proc_rec proc;
	__u64 globals;		       /* executor_globals of the sampled thread; 0: none */
	__u64 at;		       /* the next frame; 0: none */
	__u64 live_frame, live_opline; /* from the loop's registers; 0: unknown */
	/* The frame's operation, its address (0: unknown), and its function */
	__u64 opline;
	struct php_op op;
	__u32 code; /* as in rec_code_object */
	__u32 is_native;
	__u32 n, complete, truncated;
	__u32 mark_due; /* the last frame ends a loop, unless its delegating generators follow */
	/* Frames of these generators, outermost first, and the frame that is outside all of them */
	__u32 delegating, n_delegates;
	__u64 outside;
	__u64 delegates[DELEGATES_MAX];
	struct php_call call; /* call of the frame */
	__u64 block_start, block_bytes;
	__u64 block[FRAME_BLOCK_WORDS];
	struct php_slot slots[PHP_SLOTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: number of slots */
	__type(key, __u32);
	__type(value, struct php_state);
} php_states SEC(".maps");

static __always_inline struct php_state *state__get(void)
{
	__u32 key = slot__key();

	return bpf_map_lookup_elem(&php_states, &key);
}

/* --- frames --- */

/* Reads a block of frames. Frames are adjacent on PHP's own stack, with outer frames at lower
 * addresses. The block ends with the current frame, but stays in its page: the stack's memory may
 * begin there. */
static __noinline int block__read(struct php_state *state)
{
	__u64 start = state->at + FRAME_BYTES - FRAME_BLOCK_BYTES;

	if ((start ^ state->at) & ~(PAGE_BYTES - 1ULL))
		start = state->at & ~(PAGE_BYTES - 1ULL);
	state->block_start = start;
	state->block_bytes = FRAME_BLOCK_BYTES;
	if (!read_user(state->block, FRAME_BLOCK_BYTES, start))
		return 0;
	state->block_start = state->at;
	state->block_bytes = FRAME_BYTES;
	if (!read_user(state->block, FRAME_BYTES, state->at))
		return 0;
	state->block_bytes = 0;
	return -1;
}

/* Copies the frame at state->at to state->call. */
static __always_inline int frame__load(struct php_state *state)
{
	__u64 at;
	int i;

	if (state->at & 7)
		return -1;
	if ((state->block_bytes < FRAME_BYTES ||
	     state->at - state->block_start > state->block_bytes - FRAME_BYTES) &&
	    block__read(state))
		return -1;
	at = (state->at - state->block_start) >> 3;
	for (i = 0; i < FRAME_WORDS; i++)
		state->call.frame[i] = state->block[(at + i) & (FRAME_BLOCK_WORDS - 1)];
	return 0;
}

/* --- operations --- */

static __always_inline int function__holds(const struct php_state *state, __u64 opline)
{
	return opline - function__word(&state->call, state->proc.offsets.opcodes) <
	       function__bytes(&state->call);
}

/* Sets state->opline and op to the operation of the frame. A frame that has called another one has
 * stored the operation's address. The frame in the loop has the address in a register, and stores
 * it only before operations that may fail. While an exception is propagated, the frame has a
 * substitute, and the original operation is stored elsewhere. */
static __noinline int op__load(struct php_state *state)
{
	__u64 opline = state->call.frame[FRAME_OPLINE];

	if (state->live_frame == state->at && function__holds(state, state->live_opline))
		opline = state->live_opline;
	if (!function__holds(state, opline) &&
	    (!state->proc.offsets.exception_opline ||
	     read_user(&opline, sizeof(opline),
		       state->globals + state->proc.offsets.exception_opline) ||
	     !function__holds(state, opline)))
		opline = 0;
	if (!opline || read_user(&state->op, sizeof(state->op), opline + OP_EXTENDED)) {
		state->op = (struct php_op) {};
		opline = 0;
	}
	state->opline = opline;
	return 0;
}

/* --- cached functions --- */

static __always_inline struct php_slot *slot__at(struct php_state *state, __u64 function)
{
	__u64 hash = (function + state->call.key.space) * 0x9e3779b97f4a7c15ULL;

	return &state->slots[hash >> (64 - PHP_SLOTS_LOG2) & (PHP_SLOTS - 1)];
}

/* Returns 1 if the slot has the frame's function, and sets the function and the operation in
 * @state. */
static __always_inline int slot__holds(struct php_state *state, struct php_slot *slot)
{
	__u64 opline = state->call.frame[FRAME_OPLINE];

	if (slot->function != state->call.frame[FRAME_FUNC] || !slot->code ||
	    slot->space != state->call.key.space ||
	    !code_object__is_fresh(state->call.now_ns, state->call.replaces, slot->since_ns,
				   slot->checked_ns))
		return 0;
	state->code = slot->code;
	state->is_native = !slot->bytes;
	if (!slot->bytes) {
		state->op = (struct php_op) {};
		return 1;
	}
	if (state->live_frame == state->at && state->live_opline - slot->from < slot->bytes)
		opline = state->live_opline;
	if (opline - slot->from >= slot->bytes)
		return 0;
	if (opline != slot->opline) {
		slot->opline = 0;
		if (read_user(&slot->op, sizeof(slot->op), opline + OP_EXTENDED))
			return 0;
		slot->opline = opline;
	}
	state->op = slot->op;
	return 1;
}

/* Caches the function in state->call. */
static __noinline int slot__set(struct php_state *state, struct php_slot *slot, __u32 kind)
{
	const struct php_call *call = &state->call;

	if (!slot || !call->key.name || (kind != PHP_CODE_NATIVE && kind != PHP_CODE_FUNCTION) ||
	    call->function[0] & (kind == PHP_CODE_NATIVE ? FUNCTION_COPIED : FUNCTION_VIA))
		return 0;
	if (slot->function == call->frame[FRAME_FUNC] && slot->space == call->key.space &&
	    slot->code && slot->code != call->code)
		call__note_replaced(&state->call);
	slot->function = call->frame[FRAME_FUNC];
	slot->from = slot->bytes = 0;
	if (kind == PHP_CODE_FUNCTION) {
		slot->from = call->key.code;
		slot->bytes = function__bytes(call);
	}
	slot->opline = state->opline;
	slot->op = state->op;
	slot->code = call->code;
	slot->since_ns = call->since_ns;
	slot->checked_ns = call->checked_ns;
	slot->space = call->key.space;
	return 0;
}

#endif
