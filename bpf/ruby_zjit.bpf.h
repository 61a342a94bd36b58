/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_RUBY_ZJIT_BPF_H
#define BRAID_RUBY_ZJIT_BPF_H

/* Control frames of compiled code of CRuby's ZJIT, from 4.1 on (zjit.h).
 *
 * Compiled code does not set `pc` and `iseq` of its control frame, which are those of an earlier
 * frame in that place. It sets `jit_return` to an address in its native frame. The word before
 * that address points to a constant record with the iseq and a pc. Before each call that may
 * lead to other Ruby code, or to the garbage collector, it stores another record. A C method has
 * ZJIT_C_FRAME in `jit_return`. The interpreter sets it to 0, and both then are in the control
 * frame. A frame is published in the execution context after its `jit_return`.
 *
 * The record of a frame that is in a call has the place of the call. While compiled code itself
 * executes, the record is that of its last call. The same holds in a C function that neither
 * runs Ruby code nor collects garbage: the code calls it without storing a record
 * (gen_prepare_call_with_gc, zjit/src/codegen.rs). The code before the return address
 * distinguishes these cases. */

#include "bpf/ruby_ec.bpf.h"
#include "bpf/ruby_procs.bpf.h"

#define ZJIT_C_FRAME 1

struct zjit_record { /* zjit_jit_frame_t */
	__u64 pc, iseq;
};

enum zjit_frame {
	ZJIT_NONE,	 /* not a frame of ZJIT: the control frame is right */
	ZJIT_FRAME,	 /* the record is read */
	ZJIT_UNREADABLE, /* a frame of ZJIT without a record */
};

/* Reads the record of a frame with this `jit_return` of a process whose ZJIT is on, and sets
 * @ret_at to its address. */
static __always_inline enum zjit_frame zjit__read(__u64 jit_return, struct zjit_record *ret,
						  __u64 *ret_at)
{
	__u64 at;

	if (!jit_return)
		return ZJIT_NONE;
	if (jit_return & 7 || read_user(&at, sizeof(at), jit_return - sizeof(at)) || at & 7 ||
	    read_user(ret, sizeof(*ret), at))
		return ZJIT_UNREADABLE;
	*ret_at = at;
	return ZJIT_FRAME;
}

#define ZJIT_NATIVES_MAX 32  /* native frames inside of the innermost one of compiled code */
#define ZJIT_BEFORE	 256 /* bytes of code before a return address */
#define ZJIT_CALL_BYTES	 5   /* bytes of the call itself, at most */
#define ZJIT_NEAR	 (1ULL << 27) /* maximum distance of Ruby's C functions from rb_zjit_entry */

struct zjit_call {
	__u64 record;	  /* value that the code stores: a record's address, or YJIT's pc */
	__u64 returns;	  /* the return address */
	__u64 last_bytes; /* the last 8 bytes read */
	__u64 entry_at;	  /* address of rb_zjit_entry */
	__u64 code_start, code_end;
	__u32 stores; /* the record is loaded, and no call follows */
	__u32 pad;
	__u8 code[ZJIT_BEFORE];
};

/* Returns the innermost return address in compiled code, or 0. */
static __always_inline __u64 zjit__returns(const struct scratch *scratch,
					   const struct ruby_proc_rec *proc)
{
	__u32 i;

	for (i = 0; i < ZJIT_NATIVES_MAX && i < scratch->sample.n_native; i++) {
		__u64 ip =
			scratch->words[(scratch->sample.n_kernel + 2 * i) & (SAMPLE_WORDS_MAX - 1)];

		if (NATIVE_ADDRESS(ip) - proc->jit_start < proc->jit_end - proc->jit_start)
			return ip & NATIVE_EXACT ? 0 : NATIVE_ADDRESS(ip);
	}
	return 0;
}

/* Returns true if the instruction that ends with byte @i is a call: `call *%rax` to `call
 * *%rdi`, or `call` of compiled code or of a function near rb_zjit_entry. */
static __always_inline int zjit__calls(const struct zjit_call *call, __u32 i)
{
	__u64 target;

	if ((call->last_bytes >> 48 & 0xf8ff) == 0xd0ff)
		return 1;
	if ((call->last_bytes >> 24 & 0xff) != 0xe8)
		return 0;
	target = call->returns - ZJIT_BEFORE + i + 1 + (__s64)(__s32)(call->last_bytes >> 32);
	return target - call->code_start < call->code_end - call->code_start ||
	       target - call->entry_at + ZJIT_NEAR < 2 * ZJIT_NEAR;
}

static __always_inline void zjit__step(struct zjit_call *call, __u32 i)
{
	call->last_bytes = call->last_bytes >> 8 | (__u64)call->code[i & (ZJIT_BEFORE - 1)] << 56;
	if (call->last_bytes == call->record)
		call->stores = 1;
	else if (i < ZJIT_BEFORE - ZJIT_CALL_BYTES && zjit__calls(call, i))
		call->stores = 0;
}

#endif
