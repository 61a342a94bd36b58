/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_KERNEL_H
#define BRAID_KERNEL_H

/* The few kernel types that the kernel half reads, relocated by libbpf against the running
 * kernel's BTF (CO-RE), so that building needs no vmlinux.h. Only named fields matter, not their
 * order or size. */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_struct {
	unsigned long fsbase;
};

struct mm_struct;

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid { /* a task's number in one PID namespace */
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level; /* of the innermost namespace; numbers has one entry more */
	struct upid numbers[];
};

struct task_struct {
	unsigned int flags;
	unsigned int in_execve : 1;
	int pid;
	int tgid;
	struct mm_struct *mm;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct thread_struct thread;
};

struct linux_binprm;

#pragma clang attribute pop

#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */

#endif
