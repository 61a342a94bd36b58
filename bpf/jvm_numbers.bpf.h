/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_JVM_NUMBERS_BPF_H
#define BRAID_JVM_NUMBERS_BPF_H

/* The numbers of HotSpot's code. Each Java frame is a native frame that the unwinder has found
 * in that code (bpf/jvm_frames.bpf.h). It gets the number of its method or piece of code. */

#include "bpf/jvm_state.bpf.h"
#include "bpf/tableless.bpf.h"

static __always_inline int code__announce(const struct jvm_key *key, const struct scratch *scratch,
					  __u32 code, __u64 start)
{
	__u64 header[REC_CODE_OBJECT_HEADER / 8] = {};
	struct rec_code_object *rec = (void *)header;

	rec->type = REC_CODE_OBJECT;
	rec->code = code;
	rec->tgid = scratch->sample.tgid;
	rec->walker = WALKER_JVM;
	rec->address = key->address;
	rec->table_address = key->kind == JVM_CODE_METHOD ? key->content : start;
	rec->first_line = key->content;
	rec->table_size = key->space;
	rec->table_format = key->kind;
	/* Wakes up user space, which reads more while the JVM runs and the code exists. */
	return bpf_ringbuf_output(&ring, header, sizeof(header), BPF_RB_FORCE_WAKEUP);
}

/* Gets the number of this code, which is announced to user space at its first use. `start` is
 * the address of its instructions. Returns 0, or -1 if the announcement failed; the next sample
 * then tries again. */
static __noinline int code__number(const struct jvm_key *key, const struct scratch *scratch,
				   __u64 start, __u32 *ret_code)
{
	const __u32 *existing = bpf_map_lookup_elem(&jvm_codes, key);

	*ret_code = existing ? *existing : code_object__new();
	if (existing)
		return 0;
	return code_object__store(&jvm_codes, key, !code__announce(key, scratch, *ret_code, start),
				  ret_code);
}

/* Returns the index of the current bytecode. Its address is in r13 in the innermost frame; the
 * other frames have saved it. */
static __always_inline __u32 bytecode__index(const struct jvm_offsets *offsets, __u64 const_method,
					     __u64 saved, __u64 live)
{
	__u64 start = const_method + offsets->const_method_bytes;

	if (live - start < 65536)
		return live - start;
	return saved - start < 65536 ? saved - start : JVM_NO_BCI;
}

/* Returns the cache entry for this code's number, which saves the look-up in a hash map and all
 * reads for the code. */
static __always_inline struct jvm_number *number__at(struct jvm_state *state, __u64 address)
{
	__u64 hash = address * 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio */

	return &state->numbers[hash >> (64 - JVM_NUMBERS_LOG2)];
}

static __always_inline int number__is(const struct jvm_number *number,
				      const struct jvm_state *state, __u64 address, __u32 kind)
{
	return number->address == address && number->kind == kind &&
	       number->space == state->space &&
	       state->time_ns - number->checked_ns < NOTE_RECHECK_NS;
}

/* Fills a cache entry; `start` as for code__number. */
static __always_inline void number__set(struct jvm_number *number, const struct jvm_state *state,
					const struct scratch *scratch, const struct jvm_key *key,
					__u64 start)
{
	__u32 code;

	*number = (struct jvm_number) { .address = key->address,
					.content = key->content,
					.space = key->space,
					.kind = key->kind };
	if (!code__number(key, scratch, start, &code))
		number->checked_ns = state->time_ns;
	number->code = code;
}

/* Returns true if the place is not in the bytecodes that are cached for the method: a class was
 * redefined, and the memory of its method serves another one. Native methods have no place. */
static __always_inline int interpreted__is_replaced(const struct jvm_offsets *offsets,
						    __u64 const_method, __u64 saved, __u64 live)
{
	return saved && bytecode__index(offsets, const_method, saved, live) == JVM_NO_BCI;
}

/* Returns the key of a frame whose frame->blob is a Method; 0: unreadable. */
static __always_inline __u64 interpreted__key(struct unwind_state *u, const struct scratch *scratch,
					      struct jvm_state *state,
					      const struct jvm_frame *frame)
{
	const struct jvm_offsets *offsets = &state->proc.offsets;
	struct jvm_key key = { .address = frame->blob,
			       .space = state->space,
			       .kind = JVM_CODE_METHOD };
	struct jvm_number *number = number__at(state, key.address);
	__u64 live = 0;

	if (frame->at & JVM_EXACT)
		live = scratch->interrupted[13];
	if (!number__is(number, state, key.address, key.kind) ||
	    interpreted__is_replaced(offsets, number->content, frame->bcp, live)) {
		if (jvm__read(&key.content, 8, key.address + offsets->method_const_method)) {
			count(COUNT_WALK_READ);
			return 0;
		}
		number__set(number, state, scratch, &key, 0);
	}
	note__is_of(u, number->checked_ns);
	return FRAME_KEY(number->code, bytecode__index(offsets, number->content, frame->bcp, live));
}

static __always_inline __u64 compiled__key(struct unwind_state *u, const struct scratch *scratch,
					   struct jvm_state *state, const struct jvm_frame *frame)
{
	struct jvm_key key = { .address = frame->blob,
			       .content = frame->compile_id,
			       .space = state->space };
	struct jvm_number *number = number__at(state, key.address);

	key.kind = frame->kind == JVM_NMETHOD ? JVM_CODE_NMETHOD : JVM_CODE_BLOB;
	if (!number__is(number, state, key.address, key.kind) || number->content != key.content)
		number__set(number, state, scratch, &key, frame->code);
	note__is_of(u, number->checked_ns);
	return FRAME_KEY(number->code, frame->at);
}

/* Writes the code and place of the frame in state->frame to its note. */
__noinline int jvm__note(struct unwind_state *u, struct jvm_state *state)
{
	const struct scratch *scratch = scratch__get();
	const struct jvm_proc_rec *proc;
	struct jvm_frame *frame;
	struct frame_note *note;

	if (!u || !state || !scratch)
		return 0;
	proc = &state->proc;
	frame = &state->frame;
	note = &u->note;
	note->walker = WALKER_JVM;
	note->enters = frame->kind == JVM_BLOB && proc->call_stub_return &&
		       frame->code + (frame->at & ~JVM_EXACT) == proc->call_stub_return;
	note->key = frame->kind == JVM_INTERPRETED ? interpreted__key(u, scratch, state, frame)
						   : compiled__key(u, scratch, state, frame);
	return 0;
}

#endif
