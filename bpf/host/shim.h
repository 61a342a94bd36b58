/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_BPF_HOST_SHIM_H
#define BRAID_BPF_HOST_SHIM_H

/* Declarations of libbpf's headers and bpf/kernel.h for a host build. A file includes this after
 * all headers outside of the kernel half, and then bpf/X.bpf.c. */

#include "bpf/host/host.h"

#define BRAID_KERNEL_H
#define __BPF_HELPERS__
#define __BPF_CORE_READ_H__
#define __BPF_TRACING_H__
#define BPF_PROG(name, ...) name(__VA_ARGS__)
#define barrier()	    asm volatile("" ::: "memory")
#define barrier_var(var)    asm volatile("" : "+r"(var))

#define SEC(name)
#define __weak		   __attribute__((weak))
#define __noinline	   __attribute__((noinline))
#define __uint(name, val)  int(*name)[val]
#define __type(name, val)  val *name
#define __array(name, val) val *name[]

/* Functions of the kernel half are global only for the verifier's sake, and have no
 * declarations. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define HOST_READ_1(from, field)	   ((from)->field)
#define HOST_READ_2(from, field, its)	   ((from)->field->its)
#define HOST_READ(a, b, which, ...)	   which
#define BPF_CORE_READ(from, ...)	   HOST_READ(__VA_ARGS__, HOST_READ_2, HOST_READ_1)(from, __VA_ARGS__)
#define bpf_core_field_offset(type, field) offsetof(type, field)
#define bpf_core_field_exists(field)	   1

#define BPF_CORE_READ_BITFIELD_PROBED(from, field) ((from)->field)

/* --- the helpers --- */

/* Reads memory of the kernel, which is this process's; a null pointer is unreadable. */
static inline long host__read_kernel(void *to, size_t size, const void *from)
{
	if ((uintptr_t)from < 4096)
		return -1;
	memcpy(to, from, size);
	return 0;
}

static inline long host__copy_text(void *to, size_t size, const char *from)
{
	size_t len = (uintptr_t)from < 4096 ? size : strnlen(from, size - 1);

	if (len == size)
		return -1;

	memcpy(to, from, len);
	((char *)to)[len] = '\0';
	return len + 1;
}

#define bpf_map_lookup_elem(map, key)		  host_map__lookup(map, key)
#define bpf_map_update_elem(map, key, value, how) host_map__update(map, key, value)
#define bpf_map_delete_elem(map, key)		  host_map__delete(map, key)
#define bpf_probe_read_user(to, size, from)	  host__read_user(to, size, (uintptr_t)(from))
#define bpf_probe_read_kernel(to, size, from)	  host__read_kernel(to, size, (const void *)(from))
#define bpf_ringbuf_output(map, data, size, how) \
	(host.n_wakeups += (how) == BPF_RB_FORCE_WAKEUP, host__output(data, size))
#define bpf_ringbuf_reserve(map, size, how)	      host__reserve(size)
#define bpf_ringbuf_submit(data, how)		      host__submit(data)
#define bpf_ringbuf_discard(data, how)		      host__discard(data)
#define bpf_probe_read_user_str(to, size, from)	      host__read_str(to, size, (uintptr_t)(from))
#define bpf_probe_read_kernel_str(to, size, from)     host__copy_text(to, size, from)
/* no task of the host has any */
#define bpf_task_storage_get(map, task, value, flags) ((void)(map), (void)(task), (void *)NULL)
#define bpf_jiffies64()				      (host.jiffies)
#define bpf_get_prandom_u32()			      4
#define bpf_get_attach_cookie(ctx)		      ((void)(ctx), host.cookie)
#define bpf_ringbuf_query(map, what)		      host__ring(what)
/* a tail call does not return, unless the slot is empty */
#define bpf_tail_call(ctx, map, slot)           \
	do {                                    \
		if (host__tail_call(ctx, slot)) \
			return;                 \
	} while (0)
#define bpf_get_smp_processor_id()	  0
#define bpf_get_current_task_btf()	  (&host.task)
#define bpf_get_current_task()		  ((__u64)&host.task)
#define bpf_task_pt_regs(task)		  (&host.kernel_entry)
#define bpf_ktime_get_ns()		  (host.now_ns)
#define bpf_get_current_comm(to, size)	  memcpy(to, host.comm, size)
#define bpf_get_stack(ctx, to, size, how) host__get_stack(to, size)

#endif
