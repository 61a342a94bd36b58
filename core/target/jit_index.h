/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JIT_INDEX_H
#define BRAID_JIT_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An index of the code at an address and a time, as files of JIT compilers report it. Ranges may
 * overlap and may be reused for other code. */

#define JIT_ENTRIES_MAX (1u << 21) /* 80 MiB */

struct quota_account; /* core/base/quota.h */

struct jit_entry {
	uint64_t start;
	uint64_t since_ns; /* CLOCK_MONOTONIC; earliest time of the code at this address */
	uint32_t size;	   /* bytes; 0: empty */
	uint32_t text;	   /* position of the name in the file; 0: the code was removed */
	uint32_t lines;	   /* position of the source lines in the file; 0: unknown */
	uint32_t order;	   /* set by jit_index__add(); the higher one is valid if times are equal */
};

/* All zero is an empty index whose memory is limited by JIT_ENTRIES_MAX only. */
struct jit_index {
	struct quota_account *account; /* charged for memory; borrowed; may be NULL */
	struct jit_entry *entries;     /* runs that are sorted by start, then unsorted entries */
	uint64_t *ends; /* for each node of a run's tree: the greatest end below the node */
	size_t n, cap;
	struct jit_run {
		size_t first, n;
	} runs[32]; /* each less than half as long as the previous one */
	size_t n_runs;
	uint64_t visits; /* entries visited by searches */
};

/* Returns 0; -ENOSPC if there are JIT_ENTRIES_MAX; -EFBIG or -EINTR as quota__charge(); or
 * -ENOMEM. */
int jit_index__add(struct jit_index *index, const struct jit_entry *entry);

/* Finds the entry that holds @address: the latest one that existed at @time_ns, else the earliest
 * later one. Returns false if there is none, if the entry marks removed code, or if memory for
 * sorting is short. */
bool jit_index__find(struct jit_index *index, uint64_t address, uint64_t time_ns,
		     struct jit_entry *ret);

/* Frees the entries and leaves an empty index of the same account. Idempotent. */
void jit_index__done(struct jit_index *index);

#endif
