/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_CODE_OBJECT_AGE_BPF_H
#define BRAID_CODE_OBJECT_AGE_BPF_H

/* Intervals at which walkers compare a code object with the cached data for its address. That
 * memory may hold another code object a few microseconds later, for instance if functions are made,
 * called and dropped in a loop. So each sample compares each of its code objects once.
 *
 * Most code objects live as long as their process, and a comparison costs several reads. So it
 * happens only every CODE_OBJECT_RECHECK_NS under two conditions. The code object is older than
 * CODE_OBJECT_OLD_NS, and its process has replaced no sampled code object in the last
 * CODE_OBJECT_REPLACES_NS. A comparison of only its pointers is enough then, if that is cheaper;
 * all data is compared every CODE_OBJECT_REFRESH_NS. */

#include <linux/types.h>

#define CODE_OBJECT_OLD_NS	1000000000ULL
#define CODE_OBJECT_RECHECK_NS	10000000ULL
#define CODE_OBJECT_REFRESH_NS	100000000ULL
#define CODE_OBJECT_REPLACES_NS 60000000000ULL

/* Returns 1 if the process replaced a code object recently. @replaced_ns: time of the last
 * replacement; 0: never. */
static __always_inline int process__replaces(__u64 now_ns, __u64 replaced_ns)
{
	return replaced_ns && now_ns - replaced_ns < CODE_OBJECT_REPLACES_NS;
}

/* Returns 1 if the sample of @now_ns need not compare the code. @since_ns: time of its first
 * sample; @checked_ns: time of its last comparison. */
static __always_inline int code_object__is_fresh(__u64 now_ns, __u32 replaces, __u64 since_ns,
						 __u64 checked_ns)
{
	return checked_ns == now_ns || (!replaces && now_ns - checked_ns < CODE_OBJECT_RECHECK_NS &&
					checked_ns - since_ns >= CODE_OBJECT_OLD_NS);
}

#endif
