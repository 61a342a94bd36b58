/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_LOCK_CALLS_H
#define BRAID_LOCK_CALLS_H

#include <linux/types.h>

/* Functions of the C library that take locks (bpf/lock_calls.bpf.c). The attach cookie of a probe
 * describes its function. */

enum lock_call {
	LOCK_CALL_NONE,
	LOCK_CALL_MUTEX,     /* waits until it has the mutex */
	LOCK_CALL_MUTEX_TRY, /* takes the mutex if it returns 0, and does not wait without a limit
			      */
	LOCK_CALL_READ,
	LOCK_CALL_WRITE,
	LOCK_CALL_UNLOCK,
	LOCK_CALL_FORGET,   /* the address held, or from now on holds, another mutex */
	LOCK_CALL_CONDITION /* its second argument is a mutex, which it releases and takes again */
};

#define LOCK_CALL_MASK 0xff
#define LOCK_CALL_MUSL 0x100 /* musl's structs instead of glibc's */

/* A mutex in the order of locks, as one word: its address, and a number that changes when another
 * mutex is at that address (initially 0). A sample of lock-order begins with such words. The first
 * is the mutex that the thread is about to take. Then follow the mutexes that it holds, newest
 * first. */
#define LOCK_NODE(address, life) ((address) | (__u64)(life) << 47)
#define LOCK_NODE_ADDRESS(node)	 ((node) & ((1ULL << 47) - 1))
#define LOCK_NODE_LIFE(node)	 ((node) >> 47 & 0xffff)
#define LOCKS_HELD_MAX		 16 /* mutexes of one thread; a power of two */
#define LOCK_EDGES_MAX		 65536
#define LOCK_LIVES_MAX		 65536

#endif
