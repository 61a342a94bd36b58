/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_RUBY_PROCS_BPF_H
#define BRAID_RUBY_PROCS_BPF_H

#include "bpf/ruby.h"
#include "bpf/scratch.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32); /* address space */
	__type(value, struct ruby_proc_rec);
} ruby_procs __weak SEC(".maps");

/* Returns the entry of ZJIT's code, or 0 while ZJIT is off. A process never switches it off. */
static __always_inline __u64 ruby__zjit(struct ruby_proc_rec *proc)
{
	__u64 entry;

	if (!proc->zjit && proc->zjit_at &&
	    !bpf_probe_read_user(&entry, sizeof(entry), (void *)proc->zjit_at))
		proc->zjit = entry;
	return proc->zjit;
}

#endif
