/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_UNWIND_MERGE_H
#define BRAID_UNWIND_MERGE_H

#include "core/elf/cfi.h"

/* Merges the rows of two sources. The first source has precedence. */
struct unwind_merge {
	struct unwind_merge_row {
		uint64_t vaddr;
		struct unwind_rule rule;
	} * first; /* rows of the first source, which has precedence where it has a rule; ascending
		    */
	size_t n, cap, at;
	struct unwind_rule now[2]; /* current rule of each source */
	struct unwind_rule last;   /* rule of the last emitted row */
	cfi_row_fn row;
	void *ctx;
};

void unwind_merge__init(struct unwind_merge *merge, cfi_row_fn row, void *ctx);
void unwind_merge__done(struct unwind_merge *merge); /* idempotent */

/* Adds a row of the first source, before any row of the other. Drops a row that does not ascend. A
 * cfi_row_fn; @ctx is the merge. */
int unwind_merge__first(void *ctx, uint64_t vaddr, const struct unwind_rule *rule);

/* unwind_merge__other() adds a row of the other source. A cfi_row_fn; @ctx is the merge.
 * unwind_merge__end() then emits the remaining rows of the first source. */
int unwind_merge__other(void *ctx, uint64_t vaddr, const struct unwind_rule *rule);
int unwind_merge__end(struct unwind_merge *merge);

#endif
