// SPDX-License-Identifier: GPL-2.0
#include "bpf/jvm_state.bpf.h"
#include "bpf/lock.bpf.h"
#include "bpf/runtime_frames.bpf.h"

/* The walker of the JVM: the work that remains for a sample after it was unwound. */

/* Records if the thread waits to enter a monitor, and the monitor's owner. `at` is the address
 * of its JavaThread pointer. */
static __noinline int monitor__note(const struct jvm_proc_rec *proc, struct rec_sample *sample,
				    __u64 at)
{
	__u64 thread, monitor, owner, osthread, kind, its_kind;
	const struct jvm_monitor_offsets *offsets;

	if (!proc || !sample)
		return 0;
	offsets = &proc->monitors;
	if (!offsets->pending_monitor || jvm__read(&thread, 8, at) ||
	    jvm__read(&monitor, 8, thread + offsets->pending_monitor) || !monitor)
		return 0;
	sample__lock(sample, LOCK_WAITED);
	sample->object = monitor;
	/* Up to JDK 21, a monitor's owner may also be a place on the owner's stack. A JavaThread
	 * begins with the address of its class's virtual functions, as the current thread does. A
	 * place on the stack does not begin with that address. */
	if (offsets->with_owner && !jvm__read(&owner, 8, monitor + offsets->owner) && owner &&
	    !jvm__read(&kind, 8, thread) && !jvm__read(&its_kind, 8, owner) && kind == its_kind &&
	    !jvm__read(&osthread, 8, owner + offsets->osthread))
		sample__waits_for(sample, osthread + offsets->thread_id);
	return 0;
}

SEC("?perf_event")
int walk_jvm(void *ctx)
{
	struct scratch *scratch = scratch__get();
	const struct jvm_proc_rec *proc;
	__u64 entered_at;
	__u32 space;

	if (!scratch) {
		scratch__abandon();
		return 0;
	}
	entered_at = runtime_frames__walk(scratch, WALKER_JVM);
	if (cfg_locks && entered_at) {
		space = scratch->proc.space;
		proc = bpf_map_lookup_elem(&jvm_procs, &space);
		if (proc)
			monitor__note(proc, &scratch->sample,
				      entered_at + 8 + JVM_CALL_STUB_THREAD);
	}
	scratch__next(ctx, scratch);
	return 0;
}
