/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_CODE_AGE_BPF_H
#define BRAID_CODE_AGE_BPF_H

/* When walkers compare a code object with what is cached of its address. Its memory may serve
 * another one a few microseconds later, as where functions are made, called and dropped in a loop.
 * So each sample compares each code object that it meets, once.
 *
 * Most code objects live as long as their process, and comparing one costs several reads. So it is
 * seldom done where a code object is older than CODE_OLD_NS, and its process has replaced no code
 * object that was sampled in the last CODE_REPLACES_NS: every CODE_RECHECK_NS. A glance at its
 * pointers has to do then, where that is cheaper, and all is compared every CODE_REFRESH_NS. */

#include <linux/types.h>

#define CODE_OLD_NS	 1000000000ULL
#define CODE_RECHECK_NS	 10000000ULL
#define CODE_REFRESH_NS	 100000000ULL
#define CODE_REPLACES_NS 60000000000ULL

/* @replaced_ns: when the process last replaced a code object; 0: never. */
static __always_inline int process__replaces(__u64 now_ns, __u64 replaced_ns)
{
	return replaced_ns && now_ns - replaced_ns < CODE_REPLACES_NS;
}

/* Returns 1 if code that was first met at @since_ns, and last compared at @checked_ns, need not be
 * compared in the sample of @now_ns. */
static __always_inline int code__is_fresh(__u64 now_ns, __u32 replaces, __u64 since_ns,
					  __u64 checked_ns)
{
	return checked_ns == now_ns || (!replaces && now_ns - checked_ns < CODE_RECHECK_NS &&
					checked_ns - since_ns >= CODE_OLD_NS);
}

#endif
