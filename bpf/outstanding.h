/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_OUTSTANDING_H
#define BRAID_OUTSTANDING_H

#include <linux/types.h>

/* Sampled allocations that have not been freed: what both halves agree on. */

#define HELD_MAX 65536 /* at once; more are counted losses */

struct held_key { /* a child's copy of the address, and what is there after an exec, are others */
	__u32 tgid;
	__u32 program; /* as in proc_rec */
	__u64 address;
};
_Static_assert(sizeof(struct held_key) == 16, "held_key");

struct held_rec {
	__u64 link;    /* the sample's: its value is to come (SAMPLE_PENDING) */
	__u64 time_ns; /* when it was allocated */
};
_Static_assert(sizeof(struct held_rec) == 16, "held_rec");

#endif
