/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_UNMAPPED_BPF_H
#define BRAID_UNMAPPED_BPF_H

/* Reports of samples whose pc lies in no published mapping (REC_UNMAPPED).
 *
 * A report makes user space read the mappings of the process, so that the next sample is usually
 * unwound. For some processes this never succeeds: their mappings may be unreadable, or their code
 * lies outside of all mappings. Without a limit, each of their samples would need two records and
 * wake user space. So reports are limited here, per process and per mapping of a file:
 *
 *   - A report is due again after a pause, which begins at UNMAPPED_PAUSE_NS and doubles with each
 *     report until it is UNMAPPED_PAUSE_NS << UNMAPPED_SHIFT_MAX (1 s).
 *   - The pause is short again once user space has published other mappings.
 *   - A report wakes user space only while the pause of the process is short. Otherwise user space
 *     finds it when it next empties the ring, a few times a second.
 *
 * tracker_mappings.c limits by the same rule how often it reads the mappings of one process. */

#include "bpf/unwind.bpf.h"

#define UNMAPPED_PAUSE_NS    1000000ULL
#define UNMAPPED_SHIFT_MAX   10
#define UNMAPPED_SHIFT_WAKES 6 /* a pause of 64 ms */
#define UNMAPPED_REPORTS_MAX 4096

struct unmapped_key {
	__u32 tgid, program; /* as in proc_rec */
	__u64 start; /* start of the mapping, if it is of a file; 0: any report of the process */
};

struct unmapped_report {
	__u64 sent_ns;
	__u32 space, version; /* the published mappings at that time */
	__u32 shift;	      /* the pause is UNMAPPED_PAUSE_NS << shift */
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, UNMAPPED_REPORTS_MAX);
	__type(key, struct unmapped_key);
	__type(value, struct unmapped_report);
} unmapped_reports __weak SEC(".maps");

/* Returns true if a report of @key is due at @now_ns, and counts it as sent. *ret_shift is set to
 * the shift of the pause after it. Two CPUs may both send one, which is harmless. */
static __always_inline int unmapped__is_due(const struct unmapped_key *key, __u32 space,
					    __u64 now_ns, __u32 *ret_shift)
{
	struct unmapped_report *last = bpf_map_lookup_elem(&unmapped_reports, key);
	struct unmapped_report first = { .sent_ns = now_ns, .space = space };

	first.version = mappings__version(space);
	*ret_shift = 0;
	if (!last) {
		bpf_map_update_elem(&unmapped_reports, key, &first, BPF_ANY);
		return 1;
	}
	if (last->space != space || last->version != first.version)
		last->shift = 0;
	if (now_ns < last->sent_ns + (UNMAPPED_PAUSE_NS << (last->shift & 15)))
		return 0;
	last->sent_ns = now_ns;
	last->space = space;
	last->version = first.version;
	if (last->shift < UNMAPPED_SHIFT_MAX)
		last->shift++;
	*ret_shift = last->shift;
	return 1;
}

/* Sends a report if it is due. It is a function of its own, although it is called once. Inlined,
 * its record and keys would be in the frame of unwind_stack(), below the deepest chain of calls.
 * Linux 6.1 allows 512 bytes a chain. */
static __noinline int unmapped__report(const struct scratch *scratch)
{
	struct unmapped_key key = { .tgid = scratch->sample.tgid,
				    .program = scratch->proc.program };
	struct rec_unmapped rec = { .type = REC_UNMAPPED,
				    .tgid = scratch->sample.tgid,
				    .time_ns = scratch->sample.time_ns,
				    .start = scratch->unwind.unknown_start,
				    .key = scratch->unwind.image_key,
				    .program = scratch->proc.program };
	__u64 now_ns = scratch->sample.time_ns;
	__u32 space = scratch->proc.space, shift, unused;
	int due = unmapped__is_due(&key, space, now_ns, &shift);
	int wakes = due && shift <= UNMAPPED_SHIFT_WAKES;

	if (rec.start) {
		key.start = rec.start;
		due = unmapped__is_due(&key, space, now_ns, &unused);
	}
	if (!due)
		return 0;
	if (bpf_ringbuf_output(&ring, &rec, sizeof(rec),
			       wakes ? BPF_RB_FORCE_WAKEUP : ring__flags()))
		count(COUNT_EVENT_LOST);
	return 0;
}

/* Reports are limited for each 64 KB of a process's code. User space makes rules for blocks of
 * about this size. */
#define LATER_BLOCK_BITS 16
#define LATER_MARK	 1 /* no mapping starts at such an address */

/* Reports the pc (REC_LATER), so that user space reads the machine code there. */
static __noinline int later__report(const struct scratch *scratch)
{
	const struct unwind_state *u = &scratch->unwind;
	struct rec_later rec = { .type = REC_LATER,
				 .tgid = scratch->sample.tgid,
				 .time_ns = scratch->sample.time_ns,
				 .pc = u->pc - !u->exact,
				 .program = scratch->proc.program };
	struct unmapped_key key = { .tgid = rec.tgid,
				    .program = rec.program,
				    .start = (rec.pc >> LATER_BLOCK_BITS << LATER_BLOCK_BITS) |
					     LATER_MARK };
	__u32 shift;

	if (!unmapped__is_due(&key, scratch->proc.space, rec.time_ns, &shift))
		return 0;
	if (bpf_ringbuf_output(&ring, &rec, sizeof(rec),
			       shift <= UNMAPPED_SHIFT_WAKES ? BPF_RB_FORCE_WAKEUP : ring__flags()))
		count(COUNT_EVENT_LOST);
	return 0;
}

#endif
