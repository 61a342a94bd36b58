/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_UNDER_WAY_H
#define BRAID_UNDER_WAY_H

#include <linux/types.h>

#define CALL_UNKNOWN (~0ULL)

/* A thread in a system call, or waiting for a lock. Either the start was seen, or the thread has
 * had no event since the recording began. */
struct call_rec {
	__u64 syscall_ns; /* CLOCK_MONOTONIC; 0: in no selected system call */
	__u64 syscall;	  /* CALL_UNKNOWN: no event so far */
	__u64 lock_ns;	  /* start of its wait; 0: none */
	__u64 link;	  /* link of the sample of its wait */
	__u64 call_ns;	  /* start of its call for a lock; 0: none */
	__u64 address;	  /* address of that lock */
	__u32 peer;	  /* owner of the lock; 0: unknown */
	__u32 call_peer;  /* owner of the lock of its call; 0: unknown */
	__u32 tid, pad;
};
_Static_assert(sizeof(struct call_rec) == 64, "call_rec");

#endif
