// SPDX-License-Identifier: GPL-2.0
#include "bpf/kernel_mm.h"
#include "bpf/mappings.bpf.h"

/* Ends of published mappings.
 *
 * The next library may be loaded at the addresses of an unloaded one. User space receives mappings
 * of code, but late. Until it has published the new list, the unwinder would use the table of the
 * old library for the code of the new one. The kernel gives an address to a new mapping only if
 * nothing is mapped there any more. So a new mapping at the addresses of a published entry proves
 * that the entry has ended, before any code can run there. mappings_rec.ended counts these.
 *
 * User space handles two other cases by comparing the times of mappings with those of samples
 * (core/target/mapping_times.h). One is a mapping over another one (MAP_FIXED), for which the
 * kernel searches no address. The other is a kernel without this tracepoint.
 *
 * Programs at the kernel's functions would also see the end of a mapping without a successor. Some
 * machines forbid such programs, and no code runs where nothing is mapped. */

struct overlap_search {
	const struct mapping_list *list;
	__u64 end;
	__u32 lo, hi; /* entries below lo begin below the end, those from hi on at or above it */
};

static long overlap__halve(__u32 index, void *ctx)
{
	struct overlap_search *search = ctx;
	__u32 mid = (search->lo + search->hi) / 2;

	(void)index;
	if (search->lo >= search->hi)
		return 1;
	if (search->list->mappings[mid & (MAPPINGS_MAX - 1)].start < search->end)
		search->lo = mid + 1;
	else
		search->hi = mid;
	return 0;
}

/* Returns 1 if an entry of the published list overlaps [@start, @end). Only the last entry that
 * begins below @end is checked. */
static __always_inline int mappings__overlap(const struct mappings_rec *rec, __u64 start, __u64 end)
{
	const struct mapping_list *list = rec->active ? &rec->lists[1] : &rec->lists[0];
	struct overlap_search search = { .list = list, .end = end, .hi = list->n };

	bpf_loop(MAPPINGS_MAX_LOG2 + 1, overlap__halve, &search, 0);
	return search.lo && list->mappings[(search.lo - 1) & (MAPPINGS_MAX - 1)].end > start;
}

/* Returns the published mappings of @proc's address space, or NULL. */
static __always_inline struct mappings_rec *mappings__of(const struct proc_rec *proc)
{
	__u32 space = proc->space, zero = 0;
	void *inner = space ? bpf_map_lookup_elem(&mappings, &space) : NULL;

	return inner ? bpf_map_lookup_elem(inner, &zero) : NULL;
}

SEC("?tp_btf/vm_unmapped_area")
int BPF_PROG(on_address, unsigned long address, struct vm_unmapped_area_info *info)
{
	__u32 tgid = task__pid(bpf_get_current_task_btf());
	const struct proc_rec *proc = bpf_map_lookup_elem(&targets, &tgid);
	struct mappings_rec *rec = proc ? mappings__of(proc) : NULL;

	if (rec && mappings__overlap(rec, address, address + BPF_CORE_READ(info, length)))
		__sync_fetch_and_add(&rec->ended, 1);
	return 0;
}
