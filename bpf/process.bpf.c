// SPDX-License-Identifier: GPL-2.0
#include "bpf/target.bpf.h"

/* Process events of targets. They are handled here immediately. So no sample of a child is
 * missed, and none of an exec'd program is unwound by its predecessor's tables. User space receives
 * them in order with the samples. It is woken only if it has to act before the next sample. */

/* By image number: programs whose processes had nothing to attach to. */
__u8 plain_images[IMAGE_FILES_MAX];

static __always_inline void emit_task(const struct rec_task *rec, __u64 wakeup)
{
	if (bpf_ringbuf_output(&ring, (void *)rec, sizeof(*rec), wakeup))
		count(COUNT_EVENT_LOST);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_tgid = task__pid(parent), tgid = task__pid(child);
	struct proc_rec *proc = bpf_map_lookup_elem(&targets, &parent_tgid);
	struct proc_rec copy;
	struct rec_task rec = { .type = REC_FORK,
				.tgid = tgid,
				.tid = tgid,
				.parent_tgid = parent_tgid,
				.time_ns = bpf_ktime_get_ns() };

	if (tgid == parent_tgid)
		return 0;
	/* User space may not have processed the end of a target with the same PID yet. */
	if (!proc || !(proc->flags & PROC_FOLLOW)) {
		bpf_map_delete_elem(&targets, &tgid);
		return 0;
	}
	copy = *proc;
	copy.program = rec.program = program__new();
	copy.mm = (__u64)task__mm(child);
	copy.flags &= ~PROC_REQUESTED;
	if (bpf_map_update_elem(&targets, &tgid, &copy, BPF_ANY)) {
		count(COUNT_TARGETS_FULL);
		return 0;
	}
	if (bpf_core_field_exists(child->start_boottime))
		rec.start_ns = child->start_boottime;
	emit_task(&rec, copy.flags & PROC_URGENT ? BPF_RB_FORCE_WAKEUP : ring__flags());
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	__u32 tgid = task__pid(task);
	const struct proc_rec *before = bpf_map_lookup_elem(&targets, &tgid);
	struct rec_program *rec;
	struct proc_rec copy, *proc = &copy;

	if (!before)
		return 0;
	copy = *before;
	if (proc->flags & (PROC_UNDECIDED | PROC_REFUSED)) { /* as if it had never been seen */
		bpf_map_delete_elem(&targets, &tgid);
		return 0;
	}
	proc->flags &= ~PROC_STARTING;
	/* With a scope, children are found by their own first samples, unless user space sets
	 * PROC_FOLLOW again. */
	if (cfg_scope)
		proc->flags &= ~PROC_FOLLOW;
	if (cfg_scope & SCOPE_NAME)
		proc->flags |= PROC_UNDECIDED;
	proc->space = 0;
	proc->walkers = 0;
	proc->program = program__new();
	proc->mm = (__u64)task__mm(task);
	target__write(tgid, proc);
	rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);
	if (!rec) {
		count(COUNT_EVENT_LOST);
		return 0;
	}
	rec->type = REC_EXEC;
	rec->tgid = tgid;
	rec->program = proc->program;
	rec_program__fill(rec, task, 1);
	rec->is_relieved = (__u32)old_pid != tgid;
	rec->image = image__number(BPF_CORE_READ(bprm, file));
	bpf_ringbuf_submit(rec, plain_images[rec->image & (IMAGE_FILES_MAX - 1)]
					? ring__flags()
					: BPF_RB_FORCE_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_end, struct task_struct *task)
{
	__u32 tgid = task__pid(task);
	struct rec_task rec = {
		.type = REC_EXIT, .tgid = tgid, .tid = tgid, .time_ns = bpf_ktime_get_ns()
	};
	struct proc_rec *proc = bpf_map_lookup_elem(&targets, &tgid);

	/* Activity until its end, such as freeing its memory, is still sampled. */
	if (!proc || BPF_CORE_READ(task, signal, live.counter))
		return 0;
	if (proc->flags & PROC_REFUSED)
		bpf_map_delete_elem(&targets, &tgid);
	else
		emit_task(&rec, proc->flags & PROC_REQUESTED ? BPF_RB_FORCE_WAKEUP : ring__flags());
	return 0;
}

/* Handles a new name of a refused process: user space decides again with the next sample. */
SEC("?tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task)
{
	__u32 tgid = task__pid(task);
	const struct proc_rec *proc = bpf_map_lookup_elem(&targets, &tgid);

	if (proc && proc->flags & PROC_REFUSED && task__tid(task) == tgid)
		bpf_map_delete_elem(&targets, &tgid);
	return 0;
}
