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

/* Reads the thread's value of the pthread key @key; 0 if it has none. Returns 0 or -1. */
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

/* TLS variant II: the address of the thread's table of modules is at fs:8. In glibc (tcbhead_t and
 * dtv_t) an entry has 16 bytes, and its block is allocated at the thread's first use. In musl
 * (ldso/dynlink.c) an entry is one word, and the first word is the number of entries. From musl
 * 1.1.22 on, the tables of all threads contain a module once dlopen has returned. */
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

/* Reads the word at offset @at of the module's block; 0 if the thread has no such block. For module
 * 0, reads the word at fs base + @at. Returns 0 or -1. */
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
