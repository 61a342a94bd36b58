/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_UNWIND_MERGE_H
#define BRAID_UNWIND_MERGE_H

#include "core/elf/cfi.h"

/* Rows of two sources as those of one. */
struct unwind_merge {
	struct unwind_merge_row {
		uint64_t vaddr;
		struct unwind_rule rule;
	} * first; /* rows that count where they say anything; ascending */
	size_t n, cap, at;
	struct unwind_rule now[2]; /* of both, where the merge is */
	struct unwind_rule last;   /* of the last row that was put */
	cfi_row_fn row;
	void *ctx;
};

void unwind_merge__init(struct unwind_merge *merge, cfi_row_fn row, void *ctx);
void unwind_merge__done(struct unwind_merge *merge); /* idempotent */

/* A row of the source that counts more, before all of the other; one that does not ascend is
 * dropped. A cfi_row_fn; `ctx` is the merge. */
int unwind_merge__first(void *ctx, uint64_t vaddr, const struct unwind_rule *rule);

/* A row of the other; the same. Then all that is left. */
int unwind_merge__other(void *ctx, uint64_t vaddr, const struct unwind_rule *rule);
int unwind_merge__end(struct unwind_merge *merge);

#endif
