// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/unwind/unwind_merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

void unwind_merge__init(struct unwind_merge *merge, cfi_row_fn row, void *ctx)
{
	*merge = (struct unwind_merge) { .row = row, .ctx = ctx };
}

void unwind_merge__done(struct unwind_merge *merge)
{
	free(merge->first);
	merge->first = NULL;
	merge->n = merge->cap = merge->at = 0;
}

int unwind_merge__first(void *ctx, uint64_t vaddr, const struct unwind_rule *rule)
{
	struct unwind_merge *merge = ctx;

	if (merge->n && vaddr <= merge->first[merge->n - 1].vaddr)
		return 0;
	if (array__reserve(&merge->first, &merge->cap, merge->n + 1, sizeof(*merge->first)))
		return -ENOMEM;
	merge->first[merge->n++] = (struct unwind_merge_row) { vaddr, *rule };
	return 0;
}

/* Emits the rule that applies from @vaddr on. @begins: the row is from the other source, which has
 * rows that repeat their predecessor's rule. */
static int put(struct unwind_merge *merge, uint64_t vaddr, bool begins)
{
	bool other = merge->now[0].kind == UNWIND_NONE;
	const struct unwind_rule *rule = &merge->now[other];

	if (!(begins && other) && !memcmp(rule, &merge->last, sizeof(*rule)))
		return 0;
	merge->last = *rule;
	return merge->row(merge->ctx, vaddr, rule);
}

/* Emits the rows of the first source before @vaddr. */
static int catch_up(struct unwind_merge *merge, uint64_t vaddr)
{
	int ret = 0;

	while (!ret && merge->at < merge->n && merge->first[merge->at].vaddr < vaddr) {
		merge->now[0] = merge->first[merge->at].rule;
		ret = put(merge, merge->first[merge->at++].vaddr, false);
	}
	return ret;
}

int unwind_merge__other(void *ctx, uint64_t vaddr, const struct unwind_rule *rule)
{
	struct unwind_merge *merge = ctx;
	int ret = catch_up(merge, vaddr);

	if (!ret && merge->at < merge->n && merge->first[merge->at].vaddr == vaddr)
		merge->now[0] = merge->first[merge->at++].rule;
	merge->now[1] = *rule;
	return ret ? ret : put(merge, vaddr, true);
}

int unwind_merge__end(struct unwind_merge *merge)
{
	return catch_up(merge, UINT64_MAX);
}
