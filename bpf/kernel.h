/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_KERNEL_H
#define BRAID_KERNEL_H

/* The few kernel types that the kernel half reads, relocated by libbpf against the running kernel's
 * BTF (CO-RE), so that the build needs no vmlinux.h. Only named fields matter, not their order or
 * size. */

#include "bpf/kernel_mm.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_struct {
	unsigned long fsbase;
};

struct sched_entity {
	unsigned long long sum_exec_runtime; /* the first figure of /proc/PID/schedstat */
};

struct xol_area { /* a page of the process; the trampoline of return probes is at its start */
	unsigned long vaddr;
};

struct uprobes_state {
	struct xol_area *xol_area;
};

struct mm_struct {
	struct maple_tree mm_mt;   /* tree of vm_area_structs, by address; since Linux 6.1 */
	unsigned long start_stack; /* the stack pointer of the process's first instruction */
	unsigned long arg_start, arg_end;
	unsigned long brk; /* the end of the heap */
	struct file *exe_file;
	struct uprobes_state uprobes_state;
};

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
	unsigned int level; /* level of the innermost namespace; numbers has one entry more */
	struct upid numbers[];
};

struct return_instance {	      /* a call whose return address a probe has replaced */
	unsigned long stack;	      /* address of that return address */
	unsigned long orig_ret_vaddr; /* the original return address */
	struct return_instance *next; /* outwards */
};

struct uprobe_task {
	struct return_instance *return_instances;
	unsigned long vaddr;	 /* address of the probed instruction */
	unsigned long xol_vaddr; /* address of its copy, which is executed */
};

typedef struct {
	int counter;
} atomic_t;

struct signal_struct { /* state of a process */
	atomic_t live; /* threads that have not begun to exit */
};

struct sched_info {
	unsigned long long run_delay; /* ns in which it could run, but another task had the CPU */
};

typedef struct {
	unsigned int val;
} kuid_t;

struct cred {
	kuid_t euid;
};

struct kernfs_node {
	unsigned long long id; /* its file handle for name_to_handle_at(2) */
};

struct cgroup {
	struct kernfs_node *kn;
	int level;		    /* 0: the root */
	struct cgroup *ancestors[]; /* by level, including itself; since Linux 6.1 */
};

struct css_set {		 /* a task's cgroups */
	struct cgroup *dfl_cgrp; /* the one of version 2 */
};

struct task_struct {
	unsigned int flags;
	unsigned int in_execve : 1;
	char comm[16];
	void *stack;
	unsigned int __state; /* 0: running or runnable */
	int on_cpu;	      /* 1: running */
	struct sched_info sched_info;
	int pid;
	int tgid;
	struct mm_struct *mm;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	const struct cred *real_cred;
	struct css_set *cgroups;
	struct pid *thread_pid;
	struct signal_struct *signal;
	struct thread_struct thread;
	struct sched_entity se;
	unsigned long sas_ss_sp; /* the signal stack */
	unsigned long sas_ss_size;
	struct uprobe_task *utask;
	void *rseq; /* restartable sequences, a user-space address; NULL: not registered */
	unsigned long nvcsw, nivcsw;	   /* voluntary and involuntary switches to others */
	unsigned long long start_time;	   /* CLOCK_MONOTONIC, ns */
	unsigned long long start_boottime; /* CLOCK_BOOTTIME, ns */
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task { /* context of a program that runs for each task */
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

/* include/linux/sched.h */
#define PF_KTHREAD	  0x00200000
#define PF_IO_WORKER	  0x00000010 /* io_uring's workers */
#define PF_USER_WORKER	  0x00004000 /* io_uring's, vhost's, and similar workers; since Linux 6.4 */
/* Tasks that have never run user code, even if they are threads of a process. */
#define PF_KERNEL_CREATED (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER)

#endif
