/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_OUTSTANDING_H
#define BRAID_OUTSTANDING_H

#include <linux/types.h>

/* Sampled allocations that have not been freed: the interface between the kernel half and user
 * space. */

#define LIVE_ALLOCS_MAX 65536 /* maximum at once; further ones are counted losses */

struct live_alloc_key { /* differs for a child's copy of the address, and for the address after an
			   exec */
	__u32 tgid;
	__u32 program; /* as in proc_rec */
	__u64 address;
};
_Static_assert(sizeof(struct live_alloc_key) == 16, "live_alloc_key");

struct live_alloc_rec {
	__u64 link;    /* link of the sample; its value is pending (SAMPLE_PENDING) */
	__u64 time_ns; /* time of the allocation */
};
_Static_assert(sizeof(struct live_alloc_rec) == 16, "live_alloc_rec");

#endif
