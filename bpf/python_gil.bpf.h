/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_PYTHON_GIL_BPF_H
#define BRAID_PYTHON_GIL_BPF_H

#include "bpf/lock.bpf.h"
#include "bpf/python_code.bpf.h"

/* Finds whether the thread has the GIL or waits for it (Python/ceval_gil.c, up to 3.11
 * ceval_gil.h). The lock is a flag and the PyThreadState that set it last. A thread that finds it
 * set waits for a condition variable beside them. */

/* Returns 1 if @tstate is the thread's own state of any interpreter. A common lock may have been
 * taken with the state of another interpreter. */
static __always_inline int is_own(const struct python_state *state, __u64 tstate)
{
	__u32 i, own = 0;

	for (i = 0; i < PYTHON_STATES_MAX; i++)
		own |= i < state->n_tstates && state->tstates[i] == tstate;
	return own;
}

/* Returns the address of the id of the holder's thread, or 0. Up to 3.10 the state contains only
 * its struct pthread. */
static __always_inline __u64 holder__tid_at(const struct python_state *state, __u64 holder)
{
	__u64 thread;

	if (state->proc.offsets.tstate_native_id)
		return holder + state->proc.offsets.tstate_native_id;
	if (read_user(&thread, sizeof(thread), holder + state->proc.offsets.tstate_thread_id))
		return 0;
	return state->proc.libc.tid ? thread + state->proc.libc.tid : 0;
}

/* Returns 1 if the thread waits for the lock. */
static __always_inline int waits_for_gil(const struct python_proc_rec *proc, __u64 gil,
					 const struct rec_sample *sample)
{
	__u32 i;

	if (waits_in(sample, gil, proc->gil_bytes))
		return 1;
	for (i = 0; i < 2 && proc->libc.values; i++)
		if (waits_by_musl_cond(sample, gil + proc->gil_conds[i]))
			return 1;
	return 0;
}

static __noinline int gil__note(struct python_state *state, struct rec_sample *sample, __u64 gil)
{
	__u64 words[2]; /* last_holder, locked: an int, before padding */
	const struct python_proc_rec *proc;
	__u32 locked;

	if (!state || !sample)
		return 0;
	proc = &state->proc;
	if (proc->gil_locked - proc->gil_holder == 8) {
		if (read_user(words, sizeof(words), gil + proc->gil_holder))
			return 0;
		locked = words[1];
	} else if (read_user(words, 8, gil + proc->gil_holder) ||
		   read_user(&locked, sizeof(locked), gil + proc->gil_locked)) {
		return 0;
	}
	if (locked > 1) /* the lock does not exist, yet or any more */
		return 0;
	if (locked && is_own(state, words[0])) {
		sample__lock(sample, LOCK_HELD);
	} else if (waits_for_gil(proc, gil, sample)) {
		sample__lock(sample, LOCK_WAITED);
		if (locked)
			sample__waits_for(sample, holder__tid_at(state, words[0]));
	} else {
		sample__lock(sample, LOCK_FREE);
	}
	return 0;
}

/* Returns the address of the lock, or 0. From 3.12 on an interpreter may have its own. */
static __always_inline __u64 gil__of(const struct python_state *state, __u64 tstate)
{
	__u64 interp, gil;

	if (read_user(&interp, sizeof(interp), tstate + PYTHON_TSTATE_INTERP) ||
	    read_user(&gil, sizeof(gil), interp + state->proc.offsets.interp_gil))
		return 0;
	return gil;
}

static __always_inline void note_gil(struct python_state *state, struct rec_sample *sample,
				     struct python_proc_rec *proc)
{
	__u64 gil;
	__u32 i;

	if (!state->proc.offsets.interp_gil || !proc->several) {
		gil = proc->gil;
		if (!gil && state->proc.offsets.interp_gil)
			proc->gil = gil = gil__of(state, state->tstates[0]);
		if (gil)
			gil__note(state, sample, gil);
		return;
	}
	for (i = 0; i < PYTHON_STATES_MAX; i++) {
		if (i >= state->n_tstates)
			break;
		gil = gil__of(state, state->tstates[i]);
		if (gil)
			gil__note(state, sample, gil);
	}
}

#endif
