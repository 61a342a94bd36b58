/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_PYTHON_TSTATE_BPF_H
#define BRAID_PYTHON_TSTATE_BPF_H

#include "bpf/python_code.bpf.h"

#define NO_KEY 0xffffffff

/* Reads the interpreter's key, or NO_KEY, which no thread uses, while there is none. It is read
 * each time, because the key exists only from the interpreter's start until its end. */
static __always_inline int read_key(const struct python_proc_rec *proc, __u32 *ret_key)
{
	__u32 tss[2]; /* is_initialized, key */

	if (proc->state == PYTHON_STATE_PLAIN_KEY)
		return read_user(ret_key, sizeof(*ret_key), proc->state_at);
	if (read_user(tss, sizeof(tss), proc->state_at))
		return -1;
	*ret_key = tss[0] ? tss[1] : NO_KEY;
	return 0;
}

static __always_inline int read_by_key(const struct python_proc_rec *proc, __u64 fsbase,
				       __u64 *ret_value)
{
	__u32 key;

	*ret_value = 0;
	if (read_key(proc, &key))
		return -1;
	return key == NO_KEY ? 0 : read_specific(&proc->libc, fsbase, key, ret_value);
}

/* Reads the thread's PyThreadState. *ret_tstate becomes 0 if there is none (no Python in this
 * thread, or not yet). */
static __always_inline int read_tstate(const struct python_proc_rec *proc, __u64 fsbase,
				       __u64 *ret_tstate)
{
	__u64 tstate, owner;
	int err;

	*ret_tstate = 0;
	err = proc->state >= PYTHON_STATE_TLS
		      ? read_tls(&proc->libc, fsbase, proc->tls_module, proc->state_at, &tstate)
		      : read_by_key(proc, fsbase, &tstate);
	if (err)
		return -1;
	/* The state contains its thread. This check prevents a walk through other data by a wrong
	 * key. */
	if (tstate && (read_user(&owner, sizeof(owner), tstate + proc->offsets.tstate_thread_id) ||
		       owner != fsbase))
		return -1;
	*ret_tstate = tstate;
	return 0;
}

#endif
