// SPDX-License-Identifier: GPL-2.0
#include "bpf/scratch.bpf.h"

/* What happens to targets as processes. Handled here at once, so that no sample of a child is
 * missed and none of an exec'd program is unwound by its predecessor's tables; user space hears of
 * it in order with the samples. */

static __always_inline void emit_task(__u32 type, __u32 tgid, __u32 tid, __u32 parent_tgid)
{
	struct rec_task rec = { .type = type,
				.tgid = tgid,
				.tid = tid,
				.parent_tgid = parent_tgid,
				.time_ns = bpf_ktime_get_ns() };

	if (bpf_ringbuf_output(&ring, &rec, sizeof(rec), BPF_RB_FORCE_WAKEUP))
		count(COUNT_EVENT_LOST);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_tgid = task__pid(parent), tgid = task__pid(child);
	struct proc_rec *proc = bpf_map_lookup_elem(&targets, &parent_tgid);
	struct proc_rec copy;

	if (tgid == parent_tgid)
		return 0;
	if (!proc || !(proc->flags & PROC_FOLLOW)) { /* user space may not know yet of the end of */
		bpf_map_delete_elem(&targets, &tgid); /* a target that had the same PID */
		return 0;
	}
	copy = *proc;
	if (bpf_map_update_elem(&targets, &tgid, &copy, BPF_ANY)) {
		count(COUNT_TARGETS_FULL);
		return 0;
	}
	emit_task(REC_FORK, tgid, tgid, parent_tgid);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	__u32 tgid = task__pid(task);
	struct proc_rec *proc = bpf_map_lookup_elem(&targets, &tgid);

	if (!proc)
		return 0;
	proc->flags &= ~PROC_STARTING;
	proc->space = 0;
	proc->walkers = 0;
	emit_task(REC_EXEC, tgid, tgid, 0);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_end, struct task_struct *task)
{
	__u32 tgid = task__pid(task);

	/* What it does until it is gone, such as giving back its memory, is still sampled. */
	if (bpf_map_lookup_elem(&targets, &tgid) && !task->signal->live.counter)
		emit_task(REC_EXIT, tgid, tgid, 0);
	return 0;
}
