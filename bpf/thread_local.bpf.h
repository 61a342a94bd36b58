/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_THREAD_LOCAL_BPF_H
#define BRAID_THREAD_LOCAL_BPF_H

#include "bpf/c_library.h"
#include "bpf/scratch.bpf.h"

/* A thread's own data, found from its fs base: glibc and musl on x86-64. */

static __always_inline int read_user(void *to, __u32 size, __u64 from)
{
	return bpf_probe_read_user(to, size, (void *)from) ? -1 : 0;
}

/* glibc's struct pthread (nptl/descr.h): specific_1stblock[32] of {seq, data} at 784, pointers to
 * further blocks of 32 at 1296. */
#define PTHREAD_SPECIFIC_FIRST	784
#define PTHREAD_SPECIFIC_BLOCKS 1296
#define PTHREAD_KEYS_PER_BLOCK	32
#define PTHREAD_KEYS_MAX	1024

/* musl's pthread_getspecific: `self->tsd[k]`; its PTHREAD_KEYS_MAX (include/limits.h) */
#define MUSL_KEYS_MAX 128

/* The value under a pthread key; 0 where the thread has none. */
static __always_inline int read_specific(const struct c_library *libc, __u64 fsbase, __u32 key,
					 __u64 *ret_value)
{
	__u64 block = fsbase + PTHREAD_SPECIFIC_FIRST;

	if (key >= (libc->values ? MUSL_KEYS_MAX : PTHREAD_KEYS_MAX))
		return -1;
	if (libc->values) {
		*ret_value = 0;
		if (read_user(&block, sizeof(block), fsbase + libc->values))
			return -1;
		return block ? read_user(ret_value, sizeof(*ret_value), block + 8 * key) : 0;
	}
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

/* TLS variant II: the thread's table of modules is at fs:8. glibc (tcbhead_t and dtv_t): 16 bytes
 * each, allocated with the thread's first use. musl (ldso/dynlink.c): a word each, and the first
 * one says how many there are: from 1.1.22 on a module is in the tables of all threads once dlopen
 * has returned. */
#define TCB_DTV		8
#define DTV_ENTRY_BYTES 16
#define DTV_UNALLOCATED (~0ULL)
#define TLS_MODULES_MAX 4096

static __always_inline int read_tls_block(const struct c_library *libc, __u64 fsbase, __u32 module,
					  __u64 *ret_block)
{
	__u64 dtv, n;

	if (module >= TLS_MODULES_MAX || read_user(&dtv, sizeof(dtv), fsbase + TCB_DTV))
		return -1;
	if (!libc->values)
		return read_user(ret_block, sizeof(*ret_block), dtv + DTV_ENTRY_BYTES * module);
	*ret_block = 0;
	if (read_user(&n, sizeof(n), dtv))
		return -1;
	return module <= n ? read_user(ret_block, sizeof(*ret_block), dtv + 8 * module) : 0;
}

/* The word at `at` of the module's block; 0 where the thread has none. Module 0: at fs base + at */
static __always_inline int read_tls(const struct c_library *libc, __u64 fsbase, __u32 module,
				    __u64 at, __u64 *ret_value)
{
	__u64 block = fsbase;

	if (module) {
		if (read_tls_block(libc, fsbase, module, &block))
			return -1;
		if (!block || block == DTV_UNALLOCATED) {
			*ret_value = 0;
			return 0;
		}
	}
	return read_user(ret_value, sizeof(*ret_value), block + at);
}

#endif
