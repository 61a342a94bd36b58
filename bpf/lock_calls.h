/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_LOCK_CALLS_H
#define BRAID_LOCK_CALLS_H

#include <linux/types.h>

/* Functions of the C library that take locks (bpf/lock_calls.bpf.c): what the probe at one is to
 * know of it is its attach cookie. */

enum lock_call {
	LOCK_CALL_NONE,
	LOCK_CALL_MUTEX,     /* waits until it has it */
	LOCK_CALL_MUTEX_TRY, /* takes it, if it returns 0, but does not wait for ever */
	LOCK_CALL_READ,
	LOCK_CALL_WRITE,
	LOCK_CALL_UNLOCK,
	LOCK_CALL_FORGET,   /* what is at this address was, or is from now on, another mutex */
	LOCK_CALL_CONDITION /* its second argument is let go, and taken again */
};

#define LOCK_CALL_MASK 0xff
#define LOCK_CALL_MUSL 0x100 /* musl's structs, not glibc's */

/* A mutex in the order of locks, as the first words of such a sample: that which is taken, then
 * those that are held, the newest first. Its address, and a number that changes when another mutex
 * comes there; 0 at first. */
#define LOCK_NODE(address, life) ((address) | (__u64)(life) << 47)
#define LOCK_NODE_ADDRESS(node)	 ((node) & ((1ULL << 47) - 1))
#define LOCK_NODE_LIFE(node)	 ((node) >> 47 & 0xffff)
#define LOCKS_HELD_MAX		 16 /* of a thread: a power of two */
#define LOCK_EDGES_MAX		 65536
#define LOCK_LIVES_MAX		 65536

#endif
