/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_VMA_BPF_H
#define BRAID_VMA_BPF_H

/* Finds the mapping of an address in the kernel's own list, for processes whose mappings user space
 * has not published yet: a program may end before user space can read them. The table is found by
 * the mapped file, if any process has mapped the file before.
 *
 * The kernel holds a process's mappings in a maple tree (lib/maple_tree.c, since Linux 6.1). Its
 * own readers search the tree without a lock, because nodes are freed only after a grace period. A
 * program in an interrupt is such a reader. The data may still be out of date, so the mapping
 * itself is checked at the end for whether it holds the address. On kernels without that tree
 * nothing is found. */

#include "bpf/image_files.bpf.h"

struct reported_key {
	__u32 program, pad;
	__u64 start;
};

/* Mappings that were reported to user space. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct reported_key);
	__type(value, __u32);
} reported_images __weak SEC(".maps");

/* --- the file of a mapping --- */

/* Fills the key of the kernel's vDSO, which has no file and is identified by its size. Returns 0
 * for another mapping. */
static __always_inline int image_key__of_vdso(struct image_key *key,
					      const struct vm_area_struct *vma)
{
	const struct vm_special_mapping *special = BPF_CORE_READ(vma, vm_private_data);
	char name[8] = {};

	if (!BPF_CORE_READ(vma, vm_ops) || !special ||
	    bpf_probe_read_kernel(name, sizeof(name) - 1, BPF_CORE_READ(special, name)) ||
	    name[0] != '[' || name[1] != 'v' || name[2] != 'd' || name[3] != 's' || name[4] != 'o')
		return 0;
	key->size = BPF_CORE_READ(vma, vm_end) - BPF_CORE_READ(vma, vm_start);
	return 1;
}

static __always_inline struct image_rec *image__find(struct image_key *key,
						     const struct vm_area_struct *vma)
{
	const struct file *file = BPF_CORE_READ(vma, vm_file);
	struct image_key found;

	__builtin_memset(key, 0, sizeof(*key));
	if (file)
		image_key__of_file(key, file);
	else if (!image_key__of_vdso(key, vma))
		return NULL;
	found = *key; /* Linux 6.1 accepts no key from memory of an argument */
	return bpf_map_lookup_elem(&image_files, &found);
}

/* --- the tree --- */

/* lib/maple_tree.c at v6.1 to v6.18: a pointer to a node has its type in bits 3 to 6, and the
 * root's has bit 1 set. Bit 1 is also set in entries of leaves that are not pointers. */
#define MAPLE_NODE_BYTES       256
#define MAPLE_TYPE(entry)      ((entry) >> 3 & 0xf)
#define MAPLE_IS_MARKED(entry) (((entry)&3) == 2)
enum { MAPLE_LEAF_64 = 1, MAPLE_RANGE_64, MAPLE_ARANGE_64 };

#define MAPLE_LEVELS_MAX 6 /* nine to sixteen entries each */
#define MAPLE_SLOTS_MAX	 16

#define NODE_WORD(u, i)	 ((u)->node[(i) & (VMA_NODE_WORDS - 1)])
#define RANGE_AT(field)	 (bpf_core_field_offset(struct maple_range_64, field) / 8)
#define ARANGE_AT(field) (bpf_core_field_offset(struct maple_arange_64, field) / 8)
#define RANGE_PIVOTS	 15

/* Returns the number of the last used slot of the node in u->node, whose last index is @max, like
 * ma_data_end(). */
static __always_inline __u32 node__end(const struct unwind_state *u, __u32 type, __u64 max)
{
	__u64 last;

	if (type == MAPLE_ARANGE_64)
		return NODE_WORD(u, ARANGE_AT(meta)) & 0xff;
	last = NODE_WORD(u, RANGE_AT(pivot) + RANGE_PIVOTS - 1);
	if (!last)
		return NODE_WORD(u, RANGE_AT(meta)) & 0xff;
	return last == max ? RANGE_PIVOTS - 1 : RANGE_PIVOTS;
}

/* Returns the entry for u->seek in the node at @entry; *max becomes its last index. Returns 0 if it
 * is unreadable. */
static __always_inline __u64 node__descend(struct unwind_state *u, __u64 entry, __u64 *max)
{
	__u32 type = MAPLE_TYPE(entry), end, i, pivots, slots;

	if (type < MAPLE_LEAF_64 || type > MAPLE_ARANGE_64 ||
	    bpf_probe_read_kernel(u->node, sizeof(u->node),
				  (void *)(entry & ~(MAPLE_NODE_BYTES - 1ULL))))
		return 0;
	pivots = type == MAPLE_ARANGE_64 ? ARANGE_AT(pivot) : RANGE_AT(pivot);
	slots = type == MAPLE_ARANGE_64 ? ARANGE_AT(slot) : RANGE_AT(slot);
	end = node__end(u, type, *max);
	for (i = 0; i < MAPLE_SLOTS_MAX && i < end; i++)
		if (NODE_WORD(u, pivots + i) >= u->seek) {
			*max = NODE_WORD(u, pivots + i);
			break;
		}
	return NODE_WORD(u, slots + i);
}

/* Searches the kernel's list for the mapping that contains u->seek, and sets u->vma to the address
 * of its vm_area_struct. The mapping may have ended meanwhile. If u->vma is 0 and u->searched is
 * set, no mapping contains u->seek. If u->searched is not set, this is unknown. A global function,
 * so that the verifier follows the search once. */
__noinline int vma__seek(struct unwind_state *u)
{
	const struct mm_struct *mm = task__mm(bpf_get_current_task_btf());
	__u64 entry, max = ~0ULL;
	__u32 type, i;

	if (!u)
		return 0;
	u->searched = 0;
	u->vma = 0;
	if (!mm || !bpf_core_field_exists(mm->mm_mt))
		return 0;
	entry = (__u64)BPF_CORE_READ(mm, mm_mt.ma_root);
	if (!MAPLE_IS_MARKED(entry))
		return 0; /* no tree: at most one mapping, of address 0 */
	for (i = 0; i < MAPLE_LEVELS_MAX && entry; i++) {
		type = MAPLE_TYPE(entry);
		entry = node__descend(u, entry, &max);
		if (type == MAPLE_LEAF_64) {
			u->searched = 1;
			u->vma = MAPLE_IS_MARKED(entry) ? 0 : entry;
			return 0;
		}
	}
	return 0;
}

static __always_inline const struct vm_area_struct *vma__at(struct unwind_state *u)
{
	vma__seek(u);
	return (const void *)u->vma;
}

/* --- both --- */

/* Reports the mapping, so that user space can name its frames even if the process no longer exists
 * by then. */
static __always_inline void mapping__report(const struct scratch *scratch,
					    const struct mapping_rec *mapping, __u64 offset,
					    __u32 image)
{
	struct reported_key key = { .program = scratch->proc.program, .start = mapping->start };
	struct rec_mapped rec = { .type = REC_MAPPED,
				  .tgid = scratch->sample.tgid,
				  .start = mapping->start,
				  .end = mapping->end,
				  .offset = offset,
				  .inode = scratch->unwind.image_key.ino,
				  .program = scratch->proc.program,
				  .image = image };

	__u32 *reported = bpf_map_lookup_elem(&reported_images, &key);

	if (reported && *reported == image)
		return;
	if (bpf_ringbuf_output(&ring, &rec, sizeof(rec), ring__flags())) {
		count(COUNT_EVENT_LOST);
		return;
	}
	bpf_map_update_elem(&reported_images, &key, &image, BPF_ANY);
}

/* Returns the reason why an address in this mapping is not code; 0: it is code. */
static __always_inline int vma__no_code(const struct vm_area_struct *vma)
{
	__u64 flags = BPF_CORE_READ(vma, vm_flags);

	if (flags & VM_EXEC)
		return 0;
	return flags & VM_WRITE ? COUNT_ADDRESS_DATA : COUNT_ADDRESS_NO_EXEC;
}

/* Checks u->seek, which is in no published mapping, like vma__find(). Returns 0 if it is in
 * executable memory, else a counter. */
__noinline int vma__check(struct unwind_state *u)
{
	const struct vm_area_struct *vma;

	if (!u || !task__mm(bpf_get_current_task_btf()))
		return COUNT_UNMAPPED_PC;
	vma = vma__at(u);
	if (!vma || u->seek < BPF_CORE_READ(vma, vm_start) || u->seek >= BPF_CORE_READ(vma, vm_end))
		return COUNT_ADDRESS_UNMAPPED;
	return vma__no_code(vma);
}

/* Returns 1 if the mapping is memory that a process may fill with code. Either nothing backs it, or
 * it is a view of shared memory or of a file without a name. Another view of the process writes
 * that memory: .NET, libffi and others map such code twice. A loader maps libraries privately,
 * including those of a memfd. */
static __always_inline int vma__may_be_generated(const struct vm_area_struct *vma)
{
	const struct file *file = BPF_CORE_READ(vma, vm_file);

	if (!file)
		return !BPF_CORE_READ(vma, vm_ops);
	return BPF_CORE_READ(vma, vm_flags) & VM_SHARED && !BPF_CORE_READ(file, f_inode, i_nlink);
}

/* Returns 1 for code that a process has made since user space read its mappings, or for which it
 * has too many. mapping__find() has set its callers. Such memory is often mapped and unmapped
 * (CPython's JIT maps some for each of its traces). */
static __always_inline int mapping__is_generated(struct unwind_state *u,
						 const struct vm_area_struct *vma, int otherwise)
{
	struct mapping_rec *m = &u->mapping;

	if ((otherwise != COUNT_UNMAPPED_PC && otherwise != COUNT_MAPPINGS_FULL &&
	     otherwise != COUNT_ENDED_MAPPING) ||
	    u->pc < m->start || u->pc >= m->end || !vma__may_be_generated(vma))
		return 0;
	m->n_pages = m->is_image = 0;
	m->bias = m->start;
	u->unpublished = 1;
	u->unlisted |= otherwise == COUNT_UNMAPPED_PC;
	return 1;
}

/* Copies the mapping that holds u->pc to u->mapping. Returns a counter if there is none, or it is
 * not executable. Returns @otherwise, a counter, if the kernel's list is unavailable, or if the
 * mapping is of a file that is new to user space. */
__noinline int vma__find(struct unwind_state *u, int otherwise)
{
	struct scratch *scratch = scratch__get();
	const struct vm_area_struct *vma;
	const struct image_rec *image;
	struct mapping_rec *m;
	__u64 offset;
	int err;

	if (!u || !scratch)
		return otherwise;
	u->seek = u->pc;
	vma = vma__at(u);
	if (!vma)
		return u->searched ? COUNT_ADDRESS_UNMAPPED : otherwise;
	err = vma__no_code(vma);
	if (err)
		return err;
	m = &u->mapping;
	m->start = BPF_CORE_READ(vma, vm_start);
	m->end = BPF_CORE_READ(vma, vm_end);
	image = NULL;
	if (u->pc >= m->start && u->pc < m->end) {
		image = image__find(&u->image_key, vma);
		u->unknown_start = image || !u->image_key.ino ? 0 : m->start;
	}
	if (!image && mapping__is_generated(u, vma, otherwise))
		return 0;
	if (!image) {
		m->start = m->end = 0;
		return otherwise;
	}
	u->unpublished = 1;
	offset = u->image_key.ino ? BPF_CORE_READ(vma, vm_pgoff) * PAGE_BYTES : 0;
	m->bias = m->start - offset - image->vaddr_less_offset;
	m->vaddr_start = image->vaddr_start;
	m->n_pages = image->n_pages;
	m->base = image->base;
	m->rules_at = image->rules_at;
	m->rows_at = image->rows_at;
	mapping__report(scratch, m, offset, image->number);
	return 0;
}

#endif
