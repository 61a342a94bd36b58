/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_RUBY_ZJIT_BPF_H
#define BRAID_RUBY_ZJIT_BPF_H

/* Control frames of compiled code of CRuby's ZJIT, from 4.1 on (zjit.h).
 *
 * Compiled code leaves `pc` and `iseq` of its control frame as an earlier frame in that place had
 * them. It sets `jit_return` to an address in its native frame, and the word before that points to
 * a constant record with the iseq and a pc. Before each call that may lead to other Ruby code, or
 * to the garbage collector, it stores another record. A C method has ZJIT_C_FRAME in `jit_return`.
 * The interpreter sets it to 0, and both then are in the control frame. A frame is published in the
 * execution context after its `jit_return`.
 *
 * The record of a frame that is in a call has the place of the call. While compiled code itself
 * executes, the record has its last call's. */

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

/* Reads the record of a frame with this `jit_return` of a process whose ZJIT is on. */
static __always_inline enum zjit_frame zjit__read(__u64 jit_return, struct zjit_record *ret)
{
	__u64 at;

	if (!jit_return)
		return ZJIT_NONE;
	if (jit_return & 7 || read_user(&at, sizeof(at), jit_return - sizeof(at)) || at & 7 ||
	    read_user(ret, sizeof(*ret), at))
		return ZJIT_UNREADABLE;
	return ZJIT_FRAME;
}

#endif
