// SPDX-License-Identifier: GPL-2.0
#include "bpf/go.h"
#include "bpf/thread_local.bpf.h"

/* Finds the thread's current goroutine. Its frames are native, so that no walk is needed. */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32); /* address space */
	__type(value, struct go_proc_rec);
} go_procs SEC(".maps");

/* Returns the id of the current goroutine, m.curg; 0: none. The thread's g may be the one for its
 * own work or for signals. m.curg is NULL while the thread searches for a goroutine. g is NULL in
 * threads of C code that do not call Go. */
static __always_inline __u64 goroutine(const struct go_proc_rec *proc)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 g, m, current, id = 0;

	if (read_user(&g, sizeof(g), arch__thread_pointer(task) + (__s64)proc->g_at) ||
	    (g && (read_user(&m, sizeof(m), g + GO_G_M) ||
		   read_user(&current, sizeof(current), m + proc->curg_at) ||
		   (current && read_user(&id, sizeof(id), current + proc->goid_at))))) {
		count(COUNT_TASK_READ);
		return 0;
	}
	return id;
}

SEC("?perf_event")
int walk_go(void *ctx)
{
	struct scratch *scratch = scratch__get();
	const struct go_proc_rec *proc;

	if (!scratch) {
		scratch__abandon();
		return 0;
	}
	proc = bpf_map_lookup_elem(&go_procs, &scratch->proc.space);
	if (!proc)
		count(COUNT_WALK_NO_STATE);
	else if (proc->goid_at)
		scratch->sample.task = goroutine(proc);
	scratch__next(ctx, scratch);
	return 0;
}
