/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_TARGET_BPF_H
#define BRAID_TARGET_BPF_H

/* Selection of the processes to sample. User space adds the processes that the user named to the
 * map `targets`. Instead of processes, the user may name conditions (docs/reference/targets.md).
 * They are evaluated here at each sample, as far as the kernel has the data. The user and cgroup of
 * a task change, and the check is cheaper than tracking them. A process gets its entry with its
 * first sample, which is reported to user space by a record; until then it costs nothing. */

#include "bpf/image_files.bpf.h"

extern const volatile __u32 cfg_scope; /* SCOPE_*; 0: only the processes that user space named */
extern const volatile __u32 cfg_scope_uid;
extern const volatile __u32 cfg_scope_not; /* braid's own process, which is never sampled */
extern __u64 scope_cgroup;

/* Returns the task's cgroup of version 2. */
static __always_inline const struct cgroup *task__cgroup(const struct task_struct *task)
{
	const struct css_set *cgroups = BPF_CORE_READ(task, cgroups);

	return BPF_CORE_READ(cgroups, dfl_cgrp);
}

static __always_inline __u64 cgroup__id(const struct cgroup *cgroup)
{
	const struct kernfs_node *node = BPF_CORE_READ(cgroup, kn);

	return node ? BPF_CORE_READ(node, id) : 0;
}

/* Global functions, which the verifier checks once, and which take addresses as numbers
 * (bpf/target.bpf.c). */

/* Returns 1 if @cgroup is the selected cgroup, or is below it. */
__noinline int cgroup__is_selected(__u64 cgroup);

/* Makes the process a target at its first sample, and reports it. Returns 0 if there is an entry
 * now, else a counter. */
__noinline int target__found(__u64 task, __u32 tgid);

static __always_inline __u32 task__uid(const struct task_struct *task)
{
	const struct cred *cred = BPF_CORE_READ(task, real_cred);

	return BPF_CORE_READ(cred, euid.val);
}

/* Returns 1 if the conditions are true, as far as the kernel has the data. */
static __always_inline int scope__holds(const struct task_struct *task, __u32 tgid)
{
	if (!cfg_scope || tgid == cfg_scope_not)
		return 0;
	if (cfg_scope & SCOPE_USER && task__uid(task) != cfg_scope_uid)
		return 0;
	return !(cfg_scope & SCOPE_CGROUP) || cgroup__is_selected((__u64)task__cgroup(task));
}

static __always_inline __u64 task__program(const struct task_struct *task)
{
	const struct mm_struct *mm = task__mm(task);
	const struct file *file = mm ? BPF_CORE_READ(mm, exe_file) : NULL;

	return file ? (__u64)BPF_CORE_READ(file, f_inode) : 0;
}

/* Returns 1 for a process that braid has forked, which runs the same file. A child that runs
 * another file is older than braid: a shell has started it, and then executed braid. Processes
 * above braid are in the map, as refused. */
static __always_inline int scope__is_helper(const struct task_struct *task)
{
	const struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	const struct task_struct *parent = BPF_CORE_READ(leader, real_parent);

	return task__pid_of(parent) == cfg_scope_not &&
	       task__program(parent) == task__program(task);
}

/* Returns 1 if the process of @task is sampled, or will be with its first sample. @proc: its entry;
 * NULL: it has none. */
static __always_inline int target__is(const struct task_struct *task, __u32 tgid,
				      const struct proc_rec *proc)
{
	if (!tgid || (!proc && !cfg_scope))
		return 0;
	if (!cfg_scope)
		return 1;
	if (proc ? (proc->flags & PROC_REFUSED) != 0 : scope__is_helper(task))
		return 0;
	return scope__holds(task, tgid);
}

/* Checks any task that the kernel names, as target__is does. */
static __always_inline int target__is_any(const struct task_struct *task, __u32 tgid)
{
	return target__is(task, tgid, tgid ? bpf_map_lookup_elem(&targets, &tgid) : NULL);
}

/* Changes the entry of a process, if it still exists. It uses the key, not the pointer of a
 * look-up: user space may replace or delete the entry meanwhile. The kernel then immediately reuses
 * its memory for another process (preallocated or not: kernel/bpf/hashtab.c,
 * kernel/bpf/memalloc.c). */
static __always_inline void target__write(__u32 tgid, const struct proc_rec *proc)
{
	const struct proc_rec copy = *proc; /* before Linux 6.3, values must be on the stack */

	bpf_map_update_elem(&targets, &tgid, (void *)&copy, BPF_EXIST);
}

/* --- the record of a process and its program --- */

static __always_inline void read_command(struct rec_program *rec, const struct mm_struct *mm)
{
	__u64 start = BPF_CORE_READ(mm, arg_start), size = BPF_CORE_READ(mm, arg_end) - start;

	if (size > COMMAND_BYTES)
		size = COMMAND_BYTES;
	if (!bpf_probe_read_user(rec->command, size, (void *)start))
		rec->command_len = size;
}

/* Returns the number of the image of @file; 0: unknown. */
static __always_inline __u32 image__number(const struct file *file)
{
	const struct image_rec *image;
	struct image_key key = {};

	if (!file)
		return 0;
	image_key__of_file(&key, file);
	image = bpf_map_lookup_elem(&image_files, &key);
	return image ? image->number : 0;
}

/* Fills the record. @is_current: the memory of the process is readable. */
static __always_inline void rec_program__fill(struct rec_program *rec,
					      const struct task_struct *task, int is_current)
{
	const struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	const struct mm_struct *mm = task__mm(task);

	rec->time_ns = bpf_ktime_get_ns();
	rec->start_ns = 0;
	if (bpf_core_field_exists(leader->start_boottime))
		rec->start_ns = BPF_CORE_READ(leader, start_boottime);
	rec->cgroup = cgroup__id(task__cgroup(task));
	rec->parent_tgid = task__pid_of(BPF_CORE_READ(leader, real_parent));
	rec->uid = task__uid(task);
	rec->is_kernel = BPF_CORE_READ(task, flags) & PF_KTHREAD;
	rec->is_relieved = 0;
	rec->pad = 0;
	rec->command_len = 0;
	__builtin_memset(rec->comm, 0, sizeof(rec->comm));
	bpf_probe_read_kernel_str(rec->comm, sizeof(rec->comm),
				  (const void *)leader +
					  bpf_core_field_offset(struct task_struct, comm));
	if (mm && is_current && !rec->is_kernel)
		read_command(rec, mm);
}

/* Returns the entry of the process of a task for which target__is is true; @task is its address.
 * Returns NULL if there is no room for an entry, which is counted. */
static __always_inline struct proc_rec *target__get(__u64 task, __u32 tgid)
{
	struct proc_rec *proc = bpf_map_lookup_elem(&targets, &tgid);
	int failed;

	if (proc || !cfg_scope)
		return proc;
	failed = target__found(task, tgid);
	if (failed) {
		count(failed);
		return NULL;
	}
	return bpf_map_lookup_elem(&targets, &tgid);
}

#endif
