/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_THREAD_LOCAL_BPF_H
#define BRAID_THREAD_LOCAL_BPF_H

#include "bpf/scratch.bpf.h"

/* A thread's own data, found from its fs base: glibc on x86-64. */

static __always_inline int read_user(void *to, __u32 size, __u64 from)
{
	return bpf_probe_read_user(to, size, (void *)from) ? -1 : 0;
}

/* struct pthread (nptl/descr.h): specific_1stblock[32] of {seq, data} at 784, pointers to further
 * blocks of 32 at 1296. */
#define PTHREAD_SPECIFIC_FIRST	784
#define PTHREAD_SPECIFIC_BLOCKS 1296
#define PTHREAD_KEYS_PER_BLOCK	32
#define PTHREAD_KEYS_MAX	1024

/* The value under a pthread key; 0 where the thread has none. */
static __always_inline int read_specific(__u64 fsbase, __u32 key, __u64 *ret_value)
{
	__u64 block = fsbase + PTHREAD_SPECIFIC_FIRST;

	if (key >= PTHREAD_KEYS_MAX)
		return -1;
	if (key >= PTHREAD_KEYS_PER_BLOCK &&
	    read_user(&block, sizeof(block),
		      fsbase + PTHREAD_SPECIFIC_BLOCKS + 8 * (key / PTHREAD_KEYS_PER_BLOCK)))
		return -1;
	if (!block) {
		*ret_value = 0;
		return 0;
	}
	return read_user(ret_value, sizeof(*ret_value),
			 block + 16 * (key % PTHREAD_KEYS_PER_BLOCK) + 8);
}

/* TLS variant II (tcbhead_t and dtv_t): the thread's table of modules is at fs:8, 16 bytes each.
 * Allocated with the thread's first use. */
#define TCB_DTV		8
#define DTV_ENTRY_BYTES 16
#define DTV_UNALLOCATED (~0ULL)
#define TLS_MODULES_MAX 4096

/* The word at `at` of the module's block; 0 where the thread has none. Module 0: at fs base + at */
static __always_inline int read_tls(__u64 fsbase, __u32 module, __u64 at, __u64 *ret_value)
{
	__u64 block = fsbase, dtv;

	if (module) {
		if (module >= TLS_MODULES_MAX || read_user(&dtv, sizeof(dtv), fsbase + TCB_DTV) ||
		    read_user(&block, sizeof(block), dtv + DTV_ENTRY_BYTES * module))
			return -1;
		if (!block || block == DTV_UNALLOCATED) {
			*ret_value = 0;
			return 0;
		}
	}
	return read_user(ret_value, sizeof(*ret_value), block + at);
}

#endif
