// SPDX-License-Identifier: GPL-2.0
#include "bpf/target.bpf.h"

const volatile __u32 cfg_scope = 0;
const volatile __u32 cfg_scope_uid = 0;
const volatile __u32 cfg_scope_not = 0;

/* Id of the cgroup in the scope; ids of cgroups are never reused; 0: none. */
__u64 scope_cgroup = 0;

/* Number of changes of scope_cgroup by user space. Each change makes earlier verdicts stale. */
__u32 scope_changes = 0;

/* By a cgroup's id: twice scope_changes, plus one if the cgroup is in the scope. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16); /* user space: SCOPE_VERDICTS_MAX */
	__type(key, __u64);
	__type(value, __u32);
} scope_verdicts SEC(".maps");

#define CGROUP_LEVELS_MAX 256 /* deeper cgroups are treated as outside of the scope */

struct cgroup_search {
	const struct cgroup *cgroup;
	int found;
};

/* Checks whether the ancestor on this level is the selected cgroup. */
static long cgroup__try_level(__u32 level, void *ctx)
{
	struct cgroup_search *search = ctx;
	const void *ancestors =
		(const void *)search->cgroup + bpf_core_field_offset(struct cgroup, ancestors);
	const struct cgroup *ancestor = NULL;

	if (bpf_probe_read_kernel(&ancestor, sizeof(ancestor), ancestors + 8 * (__u64)level))
		return 1;
	search->found = cgroup__id(ancestor) == scope_cgroup;
	return search->found;
}

__noinline int cgroup__is_selected(__u64 cgroup)
{
	const struct cgroup *inner = (const void *)cgroup;
	struct cgroup_search search = { .cgroup = inner };
	__u64 id = cgroup__id(inner);
	__u32 *existing, verdict, changes = scope_changes, levels;

	if (!id || !bpf_core_field_exists(inner->ancestors))
		return 0;
	existing = bpf_map_lookup_elem(&scope_verdicts, &id);
	if (existing && *existing >> 1 == changes)
		return *existing & 1;
	levels = (__u32)BPF_CORE_READ(inner, level) + 1;
	if (levels <= CGROUP_LEVELS_MAX)
		bpf_loop(levels, cgroup__try_level, &search, 0);
	verdict = changes << 1 | search.found;
	bpf_map_update_elem(&scope_verdicts, &id, &verdict, BPF_ANY);
	return search.found;
}

/* Reports a process, and adds it to the targets. The record precedes all samples, even if two
 * threads run this at the same time: it is reserved before an entry exists that others use. */
__noinline int target__found(__u64 task, __u32 tgid)
{
	const struct task_struct *found = (const void *)task;
	struct rec_program *rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);
	const struct mm_struct *mm;
	struct proc_rec proc = { .flags = cfg_scope & SCOPE_NAME ? PROC_UNDECIDED : 0 };
	long ret;

	if (!rec)
		return COUNT_RING_FULL;
	mm = task__mm(found);
	proc.program = program__new();
	/* In the middle of exec, the owner of the registers is unknown (is_between_programs). */
	proc.mm = BPF_CORE_READ_BITFIELD_PROBED(found, in_execve) ? ~0ULL : (__u64)mm;
	rec->type = REC_FOUND;
	rec->tgid = tgid;
	rec->program = proc.program;
	rec_program__fill(rec, found, task == bpf_get_current_task());
	rec->image = mm ? image__number(BPF_CORE_READ(mm, exe_file)) : 0;
	ret = bpf_map_update_elem(&targets, &tgid, &proc, BPF_NOEXIST);
	if (ret) {
		bpf_ringbuf_discard(rec, BPF_RB_NO_WAKEUP);
		return bpf_map_lookup_elem(&targets, &tgid) ? 0 : COUNT_TARGETS_FULL;
	}
	bpf_ringbuf_submit(rec, BPF_RB_FORCE_WAKEUP);
	return 0;
}
