/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_BPF_HOST_H
#define BRAID_BPF_HOST_H

/* The kernel half as ordinary C (bpf/host/shim.h). Its programs run in this process, on the memory
 * of any target that core/base/memory.h can read. The files of bpf/host/ are parts of libbraid
 * (replay of recorded stacks). Unit tests include other parts to reach their internals.
 *
 * Maps are in ordinary memory, each value in an allocation of its own, so that a sanitizer reports
 * the errors that the verifier would. There is one thread, and one target at a time. */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>

#include <asm/ptrace.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/types.h>

#include "bpf/kernel_mm.h"
#include "bpf/shared.h"
#include "core/base/memory.h"

/* --- bpf/kernel.h --- */

/* include/linux/sched.h */
#define PF_KTHREAD	  0x00200000
#define PF_IO_WORKER	  0x00000010 /* io_uring's workers */
#define PF_USER_WORKER	  0x00004000 /* io_uring's, vhost's, and similar workers; since Linux 6.4 */
/* Tasks that have never run user code, even if they are threads of a process. */
#define PF_KERNEL_CREATED (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER)

struct pid_namespace {
	struct {
		unsigned int inum;
	} ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[4];
};

struct return_instance {
	unsigned long stack, orig_ret_vaddr;
	struct return_instance *next;
};

struct uprobe_task {
	struct return_instance *return_instances;
	unsigned long vaddr, xol_vaddr;
};

struct xol_area {
	unsigned long vaddr;
};

struct cred {
	struct {
		unsigned int val;
	} euid;
};

struct kernfs_node {
	unsigned long long id;
};

struct cgroup {
	struct kernfs_node *kn;
	int level;
	struct cgroup *ancestors[4];
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct mm_struct {
	struct maple_tree mm_mt;
	unsigned long start_stack; /* the stack pointer of the process's first instruction */
	unsigned long arg_start, arg_end;
	struct file *exe_file;
	struct {
		struct xol_area *xol_area;
	} uprobes_state;
};

struct signal_struct {
	struct {
		int counter;
	} live;
};

struct task_struct {
	unsigned int flags;
	unsigned int in_execve : 1;
	unsigned int pid, tgid;
	struct mm_struct *mm;
	char comm[16];
	struct task_struct *group_leader, *real_parent;
	const struct cred *real_cred;
	struct css_set *cgroups;
	struct pid *thread_pid;
	struct signal_struct *signal;
	struct {
		unsigned long fsbase;
	} thread;
	unsigned long sas_ss_sp, sas_ss_size;
	struct uprobe_task *utask;
	unsigned long long start_time, start_boottime;
};

/* --- the host --- */

#define HOST_MAPS_MAX	48
#define HOST_KEY_BYTES	96
#define HOST_RANGES_MAX 8

struct host_entry {
	char key[HOST_KEY_BYTES];
	void *value;	 /* owned, unless the map is a map of maps */
	bool is_changed; /* set by a program or its caller, not fetched */
};

struct host_map {
	const char *name;
	const void *map; /* the variable in the kernel half */
	bool is_array;
	uint32_t key_size, value_size; /* value_size 0: a map of maps */
	uint32_t n, max;
	struct host_entry *entries;
};

struct host_range {
	uint64_t start;
	size_t size;
	const void *bytes;
};

#define HOST_RING_BYTES (1U << 20)

struct host_sample {
	struct rec_sample head;
	uint64_t words[SAMPLE_WORDS_MAX];
};

typedef int (*host_stage_fn)(void *ctx);

struct host {
	struct host_map maps[HOST_MAPS_MAX];
	size_t n_maps;
	host_stage_fn stages[STAGES_N]; /* NULL: no program in the slot */

	/* Source of bpf_probe_read_user: the target's memory (borrowed); NULL: the ranges that a
	 * test added. */
	const struct memory *memory;
	struct host_range ranges[HOST_RANGES_MAX];
	size_t n_ranges;

	struct task_struct task;
	char comm[THREAD_NAME_BYTES];
	struct pt_regs kernel_entry; /* the task's user registers */
	const uint64_t *kernel;	     /* the task's kernel frames; NULL: made-up ones */
	uint32_t n_kernel;
	uint64_t now_ns, jiffies;
	uint64_t cookie; /* attach cookie of the probe that hits */

	/* Called once, before the next read of user memory. A test uses it to run other code in the
	 * middle of a program. NULL: none. */
	void (*interrupt)(void);
	/* Likewise, called before space in the ring is reserved, or directly after that; may set
	 * itself again. */
	void (*at_reserve)(bool reserved);

	/* Fetches the value of a key that a hash lacks from another source; the map stores it.
	 * NULL: there is no source. */
	bool (*fetch)(const struct host_map *map, const void *key, void *ret_value);

	/* Records from the ring. */
	bool ring_full;
	uint64_t ring_used;	   /* used part of HOST_RING_BYTES, as reported to programs */
	struct host_sample sample; /* the last one */
	size_t sample_bytes;
	struct rec_stack stack; /* the last one */
	size_t stack_bytes;
	uint32_t n_samples, n_stacks, n_unmapped;
	uint32_t n_wakeups; /* records, except samples, that wake user space */
	void (*on_code)(const struct rec_code_object *rec, size_t size);
	/* Receives every record, including the records that the functions above receive; the bytes
	 * are borrowed. NULL: no receiver. */
	void (*on_record)(void *ctx, const void *data, size_t size);
	void *record_ctx;
};

extern struct host host;

/* Both return NULL if the map does not exist. */
struct host_map *host_map__find(const void *map);
struct host_map *host_map__named(const char *name);

struct host_map *host_map__add(const char *name, const void *map, bool is_array, uint32_t key_size,
			       uint32_t value_size, uint32_t max);

#define HOST_ARRAY(map, n) \
	host_map__add(#map, &(map), true, sizeof(*(map).key), sizeof(*(map).value), n)
#define HOST_HASH(map, n) \
	host_map__add(#map, &(map), false, sizeof(*(map).key), sizeof(*(map).value), n)
#define HOST_ARRAY_OF_MAPS(map, n) host_map__add(#map, &(map), true, sizeof(uint32_t), 0, n)
#define HOST_HASH_OF_MAPS(map, n)  host_map__add(#map, &(map), false, sizeof(uint32_t), 0, n)

/* As the helpers of these names do. A map of maps takes and returns the inner map's only value. */
void *host_map__lookup(const void *map, const void *key);
long host_map__update(const void *map, const void *key, const void *value);
long host_map__delete(const void *map, const void *key); /* only for a hash; may return -ENOENT */
void host_map__clear(const void *map);
void host_map__reset(const void *map); /* sets the values of an array to zero, and empties a hash */

/* Frees all maps. No program can run until they are added again. */
void host__done(void);

/* Sets a variable of the kind that user space sets before programs are loaded. */
void host__set(const volatile uint32_t *variable, uint32_t value);

void host__add_range(uint64_t start, const void *bytes, size_t size);

/* Sets the registers of a stopped process from the order of DWARF (unwind_rule.h) to that of an
 * interrupt. */
void host__set_regs(struct pt_regs *regs, const uint64_t *dwarf);

/* The helpers of the kernel, as functions. */
long host__read_user(void *to, uint32_t size, uint64_t from);
long host__read_str(void *to, uint32_t size, uint64_t from);
long host__output(const void *data, size_t size);
uint64_t host__ring(uint64_t what);
void *host__reserve(size_t size);
void host__submit(void *data);
void host__discard(void *data);
long host__get_stack(void *to, uint32_t size);
bool host__tail_call(void *ctx, uint32_t stage);
long bpf_loop(uint32_t n, long (*step)(uint32_t, void *), void *ctx, uint64_t flags);

#endif
