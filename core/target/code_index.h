/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_INDEX_H
#define BRAID_CODE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which code was at an address at a time, as files of JIT compilers tell it: ranges that may
 * overlap and that are used again for other code. */

#define CODE_ENTRIES_MAX (1u << 21) /* 80 MiB */

struct quota_account; /* core/base/quota.h */

struct code_entry {
	uint64_t start;
	uint64_t since_ns; /* CLOCK_MONOTONIC: when the code may have come there */
	uint32_t size;	   /* bytes; 0: empty */
	uint32_t text;	   /* of the file: where its name is; 0: there is no code any more */
	uint32_t lines;	   /* of the file: where its lines are; 0: unknown */
	uint32_t order; /* code_index__add sets it: of two with equal times the later one holds */
};

/* All zero is an empty index, whose memory has no limit but CODE_ENTRIES_MAX. */
struct code_index {
	struct quota_account *account; /* that memory is charged to; borrowed; may be NULL */
	struct code_entry *entries;    /* runs that are sorted by start, then unsorted entries */
	uint64_t *ends;		       /* of each node of a run's tree: the greatest end below it */
	size_t n, cap;
	struct code_run {
		size_t first, n;
	} runs[32]; /* each less than half as long as the one before */
	size_t n_runs;
	uint64_t visits; /* entries that searches have looked at */
};

/* Returns 0; -ENOSPC if there are CODE_ENTRIES_MAX; -EFBIG or -EINTR as quota__charge(); or
 * -ENOMEM. */
int code_index__add(struct code_index *index, const struct code_entry *entry);

/* Finds the entry that holds @address: the latest one that was there at @time_ns, else the earliest
 * that came later. Returns false if there is none, if the entry says that there is no code any
 * more, or if memory for sorting is short. */
bool code_index__find(struct code_index *index, uint64_t address, uint64_t time_ns,
		      struct code_entry *ret);

/* Idempotent. Leaves an empty index of the same account. */
void code_index__done(struct code_index *index);

#endif
