/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_UNDER_WAY_H
#define BRAID_UNDER_WAY_H

#include <linux/types.h>

#define CALL_UNKNOWN (~0ULL)

/* A thread that is in a system call, or waits for a lock, of which there is a note, or of which
 * nothing was heard since the recording began. */
struct call_rec {
	__u64 syscall_ns; /* CLOCK_MONOTONIC; 0: in none that is wanted */
	__u64 syscall;	  /* CALL_UNKNOWN: nothing was heard */
	__u64 lock_ns;	  /* the same of its wait */
	__u64 link;	  /* of its sample */
	__u64 call_ns;	  /* the same of its call for a lock */
	__u64 address;	  /* ... which is there */
	__u32 peer;	  /* who has the lock; 0: not known */
	__u32 call_peer;  /* the same of the call's */
	__u32 tid, pad;
};
_Static_assert(sizeof(struct call_rec) == 64, "call_rec");

#endif
