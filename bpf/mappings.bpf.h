/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_MAPPINGS_BPF_H
#define BRAID_MAPPINGS_BPF_H

/* The mappings of each address space, as user space has published them. */

#include "bpf/scratch.bpf.h"

struct mappings_inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct mappings_rec));
	__uint(map_flags, BPF_F_MMAPABLE);
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, 4096);
	__type(key, __u32); /* address space */
	__array(values, struct mappings_inner);
} mappings __weak SEC(".maps");

/* Returns 1 if a published mapping has ended since user space read them. */
static __always_inline int mappings__are_over(const struct mappings_rec *rec)
{
	return *(const volatile __u32 *)&rec->ended != *(const volatile __u32 *)&rec->ended_read;
}

#endif
