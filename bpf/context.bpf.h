/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_CONTEXT_BPF_H
#define BRAID_CONTEXT_BPF_H

#include "bpf/thread_local.bpf.h"

/* Reads the request context of a sampled thread (bpf/context.h). The thread itself runs the
 * sampling program, so that no write of the record is in progress in parallel. If the sample
 * interrupts the thread in the middle of a write, the record is marked as not valid.
 *
 * A static variable costs two reads: the pointer, and the record. A variable in a library that was
 * loaded later costs two more for its block. Attributes beyond CONTEXT_BLOCK bytes, or in the next
 * page, cost another read. */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CONTEXT_SPACES_MAX); /* user space resizes it */
	__type(key, __u32);
	__type(value, struct context_rec);
} contexts __weak SEC(".maps");

extern __u32 last_context;

#define CONTEXT_BLOCK 256

/* Returns the address of the record; 0: there is none, or it is unreadable, which is counted. */
static __always_inline __u64 context__address(const struct scratch *scratch)
{
	__u32 space = scratch->proc.space;
	const struct context_rec *rec = bpf_map_lookup_elem(&contexts, &space);
	__u64 thread = arch__thread_pointer(bpf_get_current_task_btf()), address;

	if (!rec || read_tls(&rec->libc, thread, rec->module, rec->at, &address)) {
		/* A program that starts has no thread-local variables yet, and a thread that exits
		 * has no memory any longer. */
		count(thread && task__mm(bpf_get_current_task_btf()) ? COUNT_CONTEXT_READ
								     : COUNT_CONTEXT_NONE);
		return 0;
	}
	if (!address)
		count(COUNT_CONTEXT_NONE);
	return address;
}

/* Reads the attributes that the first read of the record, of @read bytes, does not contain. Returns
 * -1 if they are unreadable. */
static __always_inline int context__read_rest(struct rec_context *to, __u64 address, __u32 read)
{
	__u32 size = to->head.size;

	if (size > CONTEXT_ATTRIBUTES_MAX) {
		count(COUNT_CONTEXT_CUT);
		size = CONTEXT_ATTRIBUTES_MAX;
		to->head.size = size;
	}
	if (sizeof(to->head) + size <= read)
		return 0;
	barrier_var(size); /* the verifier must see the check below */
	if (size > CONTEXT_ATTRIBUTES_MAX)
		return -1;
	return read_user(to->attributes, size, address + sizeof(to->head));
}

/* Returns 1 if a valid record is in @to. Else counts the reason. */
static __always_inline int context__read(struct rec_context *to, __u64 address)
{
	__u32 in_page = PAGE_BYTES - (address & (PAGE_BYTES - 1));
	__u32 read = in_page < CONTEXT_BLOCK ? sizeof(to->head) : CONTEXT_BLOCK;

	if (read == CONTEXT_BLOCK ? read_user(&to->head, CONTEXT_BLOCK, address)
				  : read_user(&to->head, sizeof(to->head), address)) {
		count(COUNT_CONTEXT_READ);
		return 0;
	}
	if (to->head.valid != CONTEXT_VALID) {
		count(to->head.valid ? COUNT_CONTEXT_INVALID : COUNT_CONTEXT_DETACHED);
		return 0;
	}
	if (context__read_rest(to, address, read)) {
		count(COUNT_CONTEXT_READ);
		return 0;
	}
	return 1;
}

/* Sends the context of the thread, and stores its number in the sample. */
static __noinline int context__send(struct scratch *scratch)
{
	struct rec_context *to;
	__u64 address;
	__u32 size;

	if (!scratch)
		return 0;
	to = &scratch->context;
	address = context__address(scratch);
	if (!address || !context__read(to, address))
		return 0;
	to->type = REC_CONTEXT;
	to->tgid = scratch->sample.tgid;
	to->number = __sync_fetch_and_add(&last_context, 1) + 1;
	size = REC_CONTEXT_HEADER + to->head.size;
	barrier_var(size);
	if (size > sizeof(*to))
		size = sizeof(*to);
	if (bpf_ringbuf_output(&ring, to, size, BPF_RB_NO_WAKEUP)) {
		count(COUNT_CONTEXT_LOST);
		return 0;
	}
	scratch->sample.context = to->number;
	return 0;
}

#endif
