/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_UNIT_SHIM_H
#define BRAID_TESTS_UNIT_SHIM_H

/* The kernel half as ordinary C: what libbpf's headers and bpf/kernel.h declare, for a test that
 * includes this, after all headers that are not the kernel half's, and then the file bpf/X.bpf.c.
 * Maps are in ordinary memory, each value in an allocation of its own, so that a sanitizer sees
 * what the verifier would; memory of the "interrupted process" is a list of ranges, or a real
 * process that this one traces. */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

#include <asm/ptrace.h>
#include <linux/bpf.h>
#include <linux/types.h>

#include "bpf/shared.h"

#define __BPF_HELPERS__
#define __BPF_CORE_READ_H__
#define __BPF_TRACING_H__
#define BPF_PROG(name, ...) name(__VA_ARGS__)
#define barrier()	    asm volatile("" ::: "memory")
#define barrier_var(var)    asm volatile("" : "+r"(var))

#define SEC(name)
#define __weak
#define __noinline	   __attribute__((noinline))
#define __uint(name, val)  int(*name)[val]
#define __type(name, val)  val *name
#define __array(name, val) val *name[]

/* Global functions of the kernel half are for the verifier's sake: nobody declares them. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* --- bpf/kernel.h --- */

#define BRAID_KERNEL_H
#define PF_KTHREAD 0x00200000

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

struct mm_struct {
	struct {
		struct xol_area *xol_area;
	} uprobes_state;
};

struct linux_binprm;

struct task_struct {
	unsigned int flags;
	unsigned int in_execve : 1;
	unsigned int pid, tgid;
	struct mm_struct *mm;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct {
		unsigned long fsbase;
	} thread;
	unsigned long sas_ss_sp, sas_ss_size;
	struct uprobe_task *utask;
	unsigned long long start_time;
};

#define BPF_CORE_READ(from, field)	   ((from)->field)
#define bpf_core_field_offset(type, field) offsetof(type, field)
#define bpf_core_field_exists(field)	   1

#define BPF_CORE_READ_BITFIELD_PROBED(from, field) ((from)->field)

/* --- the host --- */

struct host_entry {
	char key[24];
	void *value; /* owned, unless the map is one of maps */
};

struct host_map {
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

struct host_sample {
	struct rec_sample head;
	uint64_t words[SAMPLE_WORDS_MAX];
};

static struct host {
	struct host_map maps[24];
	size_t n_maps;

	/* What bpf_probe_read_user reads: the process, or (0) the ranges. */
	pid_t pid;
	struct host_range ranges[8];
	size_t n_ranges;

	struct task_struct task;
	struct pt_regs kernel_entry; /* what the task's user registers were */
	uint64_t now_ns, jiffies;
	uint64_t cookie; /* of the probe that hits */

	/* What came through the ring. */
	bool ring_full;
	struct host_sample sample; /* the last one */
	size_t sample_bytes;
	struct rec_stack stack; /* the last one */
	size_t stack_bytes;
	uint32_t n_samples, n_stacks, n_unmapped;
	void (*on_code)(const struct rec_code *rec, size_t size);
} host;

static inline struct host_map *host_map__find(const void *map)
{
	for (size_t i = 0; i < host.n_maps; i++)
		if (host.maps[i].map == map)
			return &host.maps[i];
	return NULL;
}

static inline struct host_map *host_map__add(const void *map, bool is_array, uint32_t key_size,
					     uint32_t value_size, uint32_t max)
{
	struct host_map *host_map = &host.maps[host.n_maps++];

	*host_map = (struct host_map) {
		.map = map,
		.is_array = is_array,
		.key_size = key_size,
		.value_size = value_size,
		.n = is_array ? max : 0,
		.max = max,
		.entries = calloc(max, sizeof(struct host_entry)),
	};
	for (uint32_t i = 0; value_size && i < host_map->n; i++)
		host_map->entries[i].value = calloc(1, value_size);
	return host_map;
}

#define HOST_ARRAY(map, n) host_map__add(&(map), true, sizeof(*(map).key), sizeof(*(map).value), n)
#define HOST_HASH(map, n)  host_map__add(&(map), false, sizeof(*(map).key), sizeof(*(map).value), n)

static inline struct host_entry *host_map__entry(const struct host_map *map, const void *key)
{
	uint32_t index;

	if (map->is_array) {
		memcpy(&index, key, sizeof(index));
		return index < map->n ? &map->entries[index] : NULL;
	}
	for (uint32_t i = 0; i < map->n; i++)
		if (memcmp(map->entries[i].key, key, map->key_size) == 0)
			return &map->entries[i];
	return NULL;
}

/* An address that is no known map's is that of an inner map, which stands for its only value. */
static inline void *host_map__lookup(const void *map, const void *key)
{
	const struct host_map *host_map = host_map__find(map);
	const struct host_entry *entry;

	if (!host_map)
		return (void *)map;
	entry = host_map__entry(host_map, key);
	return entry ? entry->value : NULL;
}

static inline long host_map__update(const void *map, const void *key, const void *value)
{
	struct host_map *host_map = host_map__find(map);
	struct host_entry *entry = host_map__entry(host_map, key);

	if (!entry) {
		if (host_map->is_array || host_map->n == host_map->max)
			return -E2BIG;
		entry = &host_map->entries[host_map->n++];
		memcpy(entry->key, key, host_map->key_size);
		entry->value = calloc(1, host_map->value_size);
	}
	memcpy(entry->value, value, host_map->value_size);
	return 0;
}

static inline void host_map__clear(const void *map)
{
	struct host_map *host_map = host_map__find(map);

	for (uint32_t i = 0; i < host_map->n; i++) {
		if (host_map->value_size)
			free(host_map->entries[i].value);
		host_map->entries[i].value = NULL;
	}
	host_map->n = 0;
}

static inline void host__done(void)
{
	for (size_t i = 0; i < host.n_maps; i++) {
		host_map__clear(host.maps[i].map);
		free(host.maps[i].entries);
	}
	host.n_maps = 0;
}

/* Sets a variable that user space sets before the programs are loaded. */
static inline void host__set(const volatile uint32_t *variable, uint32_t value)
{
	uintptr_t size = sysconf(_SC_PAGESIZE), page = (uintptr_t)variable & ~(size - 1);

	mprotect((void *)page, size, PROT_READ | PROT_WRITE); /* read-only with some compilers */
	*(volatile uint32_t *)variable = value;
}

static inline void host__add_range(uint64_t start, const void *bytes, size_t size)
{
	host.ranges[host.n_ranges++] = (struct host_range) { start, size, bytes };
}

static inline long host__read_user(void *to, uint32_t size, uint64_t from)
{
	struct iovec local = { to, size }, remote = { (void *)from, size };

	if (host.pid && process_vm_readv(host.pid, &local, 1, &remote, 1, 0) == (ssize_t)size)
		return 0;
	for (size_t i = 0; !host.pid && i < host.n_ranges; i++) {
		const struct host_range *range = &host.ranges[i];

		if (from >= range->start && size <= range->size &&
		    from - range->start <= range->size - size) {
			memcpy(to, (const char *)range->bytes + (from - range->start), size);
			return 0;
		}
	}
	memset(to, 0, size); /* as the kernel does */
	return -EFAULT;
}

static inline long host__output(const void *data, size_t size)
{
	uint32_t type;

	if (host.ring_full)
		return -EAGAIN;
	memcpy(&type, data, sizeof(type));
	if (type == REC_SAMPLE) {
		memcpy(&host.sample, data, size);
		host.sample_bytes = size;
		host.n_samples++;
	} else if (type == REC_STACK) {
		memcpy(&host.stack, data, size);
		host.stack_bytes = size;
		host.n_stacks++;
	} else if (type == REC_UNMAPPED) {
		host.n_unmapped++;
	} else if (type == REC_CODE && host.on_code) {
		host.on_code(data, size);
	}
	return 0;
}

/* A record that is made in the ring itself; one at a time. */
__attribute__((noinline, unused)) static void *host__reserve(size_t size)
{
	uint64_t *data = host.ring_full ? NULL : malloc(sizeof(size) + size);

	if (!data)
		return NULL;
	*data = size;
	return memset(data + 1, 0xee, size);
}

static inline void host__submit(void *data)
{
	uint64_t *start = (uint64_t *)data - 1;

	host__output(data, *start);
	free(start);
}

static inline long host__read_str(void *to, uint32_t size, uint64_t from)
{
	char *text = to;

	for (uint32_t i = 0; i < size; i++) {
		if (host__read_user(&text[i], 1, from + i)) {
			memset(to, 0, size); /* as the kernel does */
			return -EFAULT;
		}
		if (!text[i])
			return i + 1;
	}
	text[size - 1] = '\0';
	return size;
}

/* Registers of a stopped process in the order of DWARF (unwind_rule.h), as an interrupt sees
 * them. */
static inline void host__set_regs(struct pt_regs *regs, const uint64_t *dwarf)
{
	*regs = (struct pt_regs) {
		.rax = dwarf[0],
		.rdx = dwarf[1],
		.rcx = dwarf[2],
		.rbx = dwarf[3],
		.rsi = dwarf[4],
		.rdi = dwarf[5],
		.rbp = dwarf[6],
		.rsp = dwarf[7],
		.r8 = dwarf[8],
		.r9 = dwarf[9],
		.r10 = dwarf[10],
		.r11 = dwarf[11],
		.r12 = dwarf[12],
		.r13 = dwarf[13],
		.r14 = dwarf[14],
		.r15 = dwarf[15],
		.rip = dwarf[16],
		.cs = 0x33, /* __USER_CS */
	};
}

/* --- the helpers --- */

#define bpf_map_lookup_elem(map, key)		  host_map__lookup(map, key)
#define bpf_map_update_elem(map, key, value, how) host_map__update(map, key, value)
#define bpf_probe_read_user(to, size, from)	  host__read_user(to, size, (uintptr_t)(from))
#define bpf_probe_read_kernel(to, size, from)	  (memcpy(to, from, size), 0)
#define bpf_ringbuf_output(map, data, size, how)  host__output(data, size)
#define bpf_ringbuf_reserve(map, size, how)	  host__reserve(size)
#define bpf_ringbuf_submit(data, how)		  host__submit(data)
#define bpf_probe_read_user_str(to, size, from)	  host__read_str(to, size, (uintptr_t)(from))
#define bpf_jiffies64()				  (host.jiffies)
#define bpf_get_attach_cookie(ctx)		  ((void)(ctx), host.cookie)
#define bpf_ringbuf_query(map, what)		  ((uint64_t)0)
#define bpf_tail_call(ctx, map, slot)		  ((void)(ctx)) /* no program in any slot */
#define bpf_get_smp_processor_id()		  0
#define bpf_get_current_task_btf()		  (&host.task)
#define bpf_task_pt_regs(task)			  (&host.kernel_entry)
#define bpf_ktime_get_ns()			  (host.now_ns)
#define bpf_get_current_comm(to, size)		  strcpy(to, "host")
#define bpf_get_stack(ctx, to, size, how)	  host__get_stack(to, size)

static inline long bpf_loop(uint32_t n, long (*step)(uint32_t, void *), void *ctx, uint64_t flags)
{
	uint32_t i = 0;

	(void)flags;
	while (i < n && !step(i++, ctx))
		;
	return i;
}

/* Three frames in the kernel. */
static inline long host__get_stack(void *to, uint32_t size)
{
	static const uint64_t frames[] = { -3, -2, -1 };

	(void)size;
	memcpy(to, frames, sizeof(frames));
	return sizeof(frames);
}

#endif
