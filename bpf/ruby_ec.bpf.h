/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_RUBY_EC_BPF_H
#define BRAID_RUBY_EC_BPF_H

/* The position of CRuby's threads: the execution context and its control frames. */

#include "bpf/ruby.h"
#include "bpf/thread_local.bpf.h"

/* rb_execution_context_t, rb_control_frame_t: equal in 2.7 to 4.0 */
#define EC_WORDS	3 /* vm_stack, vm_stack_size, cfp */
#define CFP_PC		0
#define CFP_ISEQ	16
#define CFP_ENVIRONMENT 32

/* An environment's last words (vm_core.h, VM_ENV_DATA_INDEX_*): the method entry or similar, the
 * environment around it or the block, flags. `ep` is the address of the last word. */
#define ENV_BYTES      24
#define ENV_PREVIOUS   ~3ULL /* mask */
#define ENV_LOCAL      2
#define FRAME_TYPE     0x7fff0000
#define FRAME_METHOD   0x11110000
#define FRAME_C	       0x55550000
#define FRAME_C_BLOCK  0x66660000
#define FRAME_DUMMY    0x79990000
#define FRAME_FINISH   0x20
#define FRAME_BY_BLOCK 0x40 /* BMETHOD */

/* Reads the thread's own execution context; 0: none. Returns 0 or -1. */
static __always_inline int read_ec(const struct ruby_proc_rec *proc, __u64 fsbase, __u64 *ret_ec)
{
	__u64 thread;
	__u32 key;

	*ret_ec = 0;
	if (proc->state != RUBY_STATE_KEY)
		return read_tls(&proc->libc, fsbase, proc->tls_module, proc->state_at, ret_ec);
	if (read_user(&key, sizeof(key), proc->state_at) ||
	    read_specific(&proc->libc, fsbase, key, &thread))
		return -1;
	return thread ? read_user(ret_ec, sizeof(*ret_ec), thread + proc->offsets.thread_ec) : 0;
}

#endif
