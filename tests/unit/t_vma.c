// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel half finds mappings in the kernel's own tree, and their tables by file. The mappings
 * are made up, in trees of all shapes that the kernel makes. */
#include "core/base/util.h"
#include "tests/tap.h"

#include "tests/unit/tables.h"

#define NODES_MAX  20
#define RANGES_MAX 200
#define NOWHERE	   COUNT_NO_MAPPINGS
#define PROGRAM	   5
#define INO	   42

struct range { /* range of a slot of a leaf */
	uint64_t last;
	struct vm_area_struct *vma; /* NULL: no mapping */
};

static struct super_block device = { .s_dev = 0xfe00001 };
static struct inode inode = { .i_sb = &device, .i_ino = INO, .i_size = 100 };
static struct file file = { .f_inode = &inode };
static struct vm_area_struct vmas[RANGES_MAX];
static size_t n_vmas;
static char *nodes; /* array of nodes of MAPLE_NODE_BYTES, aligned to that size */
static size_t n_nodes;

static struct rec_mapped reported_last;
static int n_reported;

static void keep_record(void *ctx, const void *data, size_t size)
{
	(void)ctx;
	n_reported++;
	if (size == sizeof(reported_last))
		memcpy(&reported_last, data, size);
}

static void clear(void)
{
	n_vmas = n_nodes = 0;
	memset(nodes, 0, NODES_MAX * MAPLE_NODE_BYTES);
}

static struct vm_area_struct *map(uint64_t start, uint64_t end)
{
	vmas[n_vmas] = (struct vm_area_struct) { .vm_start = start,
						 .vm_end = end,
						 .vm_flags = VM_EXEC,
						 .vm_ops = &vmas,
						 .vm_pgoff = 2,
						 .vm_file = &file };
	return &vmas[n_vmas++];
}

static uint64_t entry_of(const void *node, unsigned type)
{
	return (uintptr_t)node | type << 3 | 4; /* mt_mk_node */
}

/* Makes a leaf of @n ranges. As in the kernel, its last index has a pivot only if there is room.
 * The place of the last slot contains the number of ranges, unless all slots are in use. */
static uint64_t leaf(const struct range *ranges, unsigned n, bool last_pivot)
{
	struct maple_range_64 *node = (void *)(nodes + MAPLE_NODE_BYTES * n_nodes++);

	for (unsigned i = 0; i < n; i++) {
		if (i < RANGE_PIVOTS && (i + 1 < n || last_pivot))
			node->pivot[i] = ranges[i].last;
		node->slot[i] = ranges[i].vma;
	}
	if (n < MAPLE_SLOTS_MAX && !node->pivot[RANGE_PIVOTS - 1])
		node->meta.end = n - 1;
	return entry_of(node, MAPLE_LEAF_64);
}

static uint64_t inner(const uint64_t *entries, const uint64_t *lasts, unsigned n, unsigned type)
{
	void *node = nodes + MAPLE_NODE_BYTES * n_nodes++;
	struct maple_range_64 *range = node;
	struct maple_arange_64 *arange = node;

	for (unsigned i = 0; i < n; i++) {
		if (i + 1 < n)
			(type == MAPLE_ARANGE_64 ? arange->pivot : range->pivot)[i] = lasts[i];
		(type == MAPLE_ARANGE_64 ? arange->slot : range->slot)[i] = (void *)entries[i];
	}
	if (type == MAPLE_ARANGE_64)
		arange->meta.end = n - 1;
	else if (n < MAPLE_SLOTS_MAX)
		range->meta.end = n - 1;
	return entry_of(node, type);
}

static void set_root(uint64_t entry)
{
	sampler__memory.mm_mt.ma_root = (void *)(entry | 2); /* mte_mk_root */
}

static int find(uint64_t pc)
{
	struct unwind_state *u = &scratch__get()->unwind;

	memset(u, 0, sizeof(*u));
	u->pc = pc;
	return vma__find(u, NOWHERE);
}

static bool finds(uint64_t pc, const struct vm_area_struct *vma)
{
	const struct mapping_rec *found = &scratch__get()->unwind.mapping;

	if (!vma)
		return find(pc) && !found->start;
	return !find(pc) && found->start == vma->vm_start && found->end == vma->vm_end;
}

/* Returns the number of edges of ranges that are wrong. */
static int count_wrong(const struct range *ranges, size_t n)
{
	uint64_t first = 0;
	int wrong = 0;

	for (size_t i = 0; i < n; first = ranges[i++].last + 1)
		wrong += !finds(first, ranges[i].vma) + !finds(ranges[i].last, ranges[i].vma) +
			 !finds(first + (ranges[i].last - first) / 2, ranges[i].vma);
	return wrong;
}

/* Fills @ranges with mappings and gaps; the last one is a gap that ends with the address space. */
static void fill(struct range *ranges, size_t n)
{
	uint64_t at = 0x10000;

	for (size_t i = 0; i < n; i++) {
		uint64_t next = at + 0x1000 * (1 + i % 7);

		ranges[i] = (struct range) { next - 1, i % 3 ? map(at, next) : NULL };
		at = next;
	}
	ranges[n - 1] = (struct range) { UINT64_MAX, NULL };
}

static void test_leaf(unsigned n, bool last_pivot)
{
	struct range ranges[RANGES_MAX];

	clear();
	fill(ranges, n);
	set_root(leaf(ranges, n, last_pivot));
	is_int(count_wrong(ranges, n), 0, "a leaf of %u entries%s", n,
	       last_pivot ? ", its end told twice" : "");
}

static void test_levels(unsigned per_leaf, unsigned n_leaves, unsigned type)
{
	struct range ranges[RANGES_MAX];
	uint64_t entries[16], lasts[16];
	unsigned n = per_leaf * n_leaves;

	clear();
	fill(ranges, n);
	for (unsigned i = 0; i < n_leaves; i++) {
		entries[i] = leaf(ranges + i * per_leaf, per_leaf, true);
		lasts[i] = ranges[(i + 1) * per_leaf - 1].last;
	}
	set_root(inner(entries, lasts, n_leaves, type));
	is_int(count_wrong(ranges, n), 0, "%u leaves of %u entries, type %u", n_leaves, per_leaf,
	       type);
}

static void test_no_tree(void)
{
	sampler__memory.mm_mt.ma_root = NULL;
	ok(finds(0x10000, NULL), "no tree");
	sampler__memory.mm_mt.ma_root = &vmas[0];
	ok(finds(0x10000, NULL), "one mapping of address 0 alone");
	host.task.mm = NULL;
	ok(finds(0x10000, NULL), "no memory");
	host.task.mm = &sampler__memory;
}

static void test_entries(void)
{
	struct range ranges[] = { { 0xfff, NULL }, { 0x1fff, NULL }, { UINT64_MAX, NULL } };
	struct vm_area_struct *vma;

	clear();
	vma = ranges[1].vma = map(0x1000, 0x2000);
	set_root(leaf(ranges, 3, false));
	vma->vm_start = 0x1800;
	ok(finds(0x1000, NULL) && finds(0x1800, vma), "a mapping that has shrunk meanwhile");
	vma->vm_start = 0x1000;
	vma->vm_flags = 0;
	ok(finds(0x1000, NULL), "data");
	ranges[1].vma = (void *)0x406; /* XA_ZERO_ENTRY: reserved */
	clear();
	set_root(leaf(ranges, 3, false));
	ok(finds(0x1000, NULL), "no mapping yet");
	set_root(entry_of(nodes, 7));
	ok(finds(0x1000, NULL), "a type of node that is not known");
}

static void test_files(void)
{
	struct range ranges[] = { { 0xffff, NULL }, { 0x1ffff, NULL }, { UINT64_MAX, NULL } };
	struct vm_special_mapping vdso = { .name = "[vdso]\0" }, other = { .name = "[uprobes]" };
	const struct image_key vdso_key = { .size = 0x10000 };
	const struct unwind_state *u = &scratch__get()->unwind;
	struct vm_area_struct *vma;

	clear();
	vma = ranges[1].vma = map(0x10000, 0x20000);
	set_root(leaf(ranges, 3, false));
	find(0x10000);
	ok(u->mapping.bias == 0x10000 - 2 * PAGE_BYTES - 0x400 && u->mapping.n_pages == 3 &&
		   u->mapping.base == 64 && u->mapping.rules_at == 8 && u->mapping.rows_at == 16 &&
		   u->mapping.vaddr_start == 0x500,
	   "its table, and where it is mapped");
	is_int(u->unknown_start, 0, "nothing is unknown");
	inode.i_size++;
	ok(finds(0x10000, NULL) && u->unknown_start == 0x10000 && u->image_key.size == 101 &&
		   u->image_key.ino == INO && u->image_key.dev == device.s_dev,
	   "another version of the file is unknown, and asked for");
	inode.i_size--;
	vma->vm_file = NULL;
	vma->vm_ops = NULL;
	ok(finds(0x10000, NULL) && !u->unknown_start, "code of a compiler is of no file");
	vma->vm_ops = &vmas;
	vma->vm_private_data = &other;
	ok(finds(0x10000, NULL), "nor is what the kernel maps");
	vma->vm_private_data = &vdso;
	ok(finds(0x10000, NULL) && !u->unknown_start, "nor its vDSO, if none was met before");
	host_map__update(&image_files, &vdso_key, &(struct image_rec) { .number = 3 });
	ok(finds(0x10000, vma) && u->mapping.bias == 0x10000, "the vDSO");
}

/* Makes a mapping for code in anonymous memory. It is made only if the callers of such code are
 * published. */
static void test_generated(void)
{
	struct range ranges[] = { { 0xffff, NULL }, { 0x1ffff, NULL }, { UINT64_MAX, NULL } };
	struct unwind_state *u = &scratch__get()->unwind;
	struct vm_area_struct *vma;

	clear();
	vma = ranges[1].vma = map(0x10000, 0x20000);
	set_root(leaf(ranges, 3, false));
	for (int i = 0; i < 9; i++) {
		bool known = i < 2 || i == 8, has_file = i == 3 || i > 5;

		vma->vm_file = has_file ? &file : NULL;
		vma->vm_ops = has_file || i == 4 ? (void *)&vmas : NULL;
		vma->vm_flags = i > 6 ? VM_EXEC | VM_SHARED : VM_EXEC;
		inode.i_nlink = i != 6 && i != 8; /* 6: private, 7: a file with a name, 8: a view */
		inode.i_size += has_file;
		memset(u, 0, sizeof(*u));
		u->mapping.n_pages = 1;
		u->mapping.callers = (struct code_callers) { 0x5000, 0x100, i != 1 };
		u->pc = i == 5 ? 0x20000 : 0x10008;
		is_int(vma__find(u, i == 2 ? NOWHERE : COUNT_UNMAPPED_PC),
		       known	? 0
		       : i == 2 ? NOWHERE
		       : i == 5 ? COUNT_ADDRESS_UNMAPPED
				: COUNT_UNMAPPED_PC,
		       "code that a process has made just now: case %d", i);
		ok(!known || (u->unlisted && u->unpublished && !u->mapping.n_pages &&
			      u->mapping.start == 0x10000 && u->mapping.end == 0x20000 &&
			      u->mapping.callers.start == 0x5000),
		   "its mapping, and who calls it");
		ok(known || !u->unlisted, "else there is none");
		inode.i_size -= has_file;
	}
}

static void test_reported(void)
{
	struct range ranges[] = { { 0xffff, NULL }, { 0x1ffff, NULL }, { UINT64_MAX, NULL } };
	struct scratch *scratch = scratch__get();
	uint32_t key = COUNT_EVENT_LOST;

	clear();
	ranges[1].vma = map(0x10000, 0x20000);
	set_root(leaf(ranges, 3, false));
	scratch->proc.program = PROGRAM;
	scratch->sample.tgid = TGID;
	n_reported = 0;
	host.ring_full = true;
	find(0x10000);
	host.ring_full = false;
	is_int(*(uint64_t *)host_map__lookup(&counters, &key), 1, "there may be no room to tell");
	find(0x10000);
	ok(n_reported == 1 && reported_last.type == REC_MAPPED && reported_last.tgid == TGID &&
		   reported_last.start == 0x10000 && reported_last.end == 0x20000 &&
		   reported_last.offset == 2 * PAGE_BYTES && reported_last.program == PROGRAM &&
		   reported_last.image == 1,
	   "a mapping is told");
	find(0x11000);
	is_int(n_reported, 1, "once");
	scratch->proc.program++;
	find(0x11000);
	is_int(n_reported, 2, "for each program");
}

int main(void)
{
	const struct image_key key = { .ino = INO, .size = 100, .dev = device.s_dev };

	nodes = aligned_alloc(MAPLE_NODE_BYTES, NODES_MAX * MAPLE_NODE_BYTES);
	sampler__open();
	host.on_record = keep_record;
	host_map__update(&image_files, &key,
			 &(struct image_rec) { .vaddr_less_offset = 0x400,
					       .vaddr_start = 0x500,
					       .n_pages = 3,
					       .base = 64,
					       .rules_at = 8,
					       .rows_at = 16,
					       .number = 1 });
	test_no_tree();
	for (unsigned n = 2; n <= MAPLE_SLOTS_MAX; n++) {
		test_leaf(n, false);
		if (n < MAPLE_SLOTS_MAX)
			test_leaf(n, true);
	}
	test_levels(7, 10, MAPLE_ARANGE_64);
	test_levels(12, 4, MAPLE_ARANGE_64);
	test_levels(10, 16, MAPLE_RANGE_64);
	test_levels(9, 2, MAPLE_RANGE_64);
	test_entries();
	test_files();
	test_generated();
	test_reported();
	sampler__close();
	free(nodes);
	return tap__done();
}
