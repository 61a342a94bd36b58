// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_scopes.h"

#include <errno.h>

#include "runtimes/jvm/jvm_stream.h"

uint32_t jvm_scopes__at(const struct jvm_scopes *scopes, uint32_t pc_offset, bool exact)
{
	int64_t wanted = (int64_t)pc_offset + (exact ? 1 : 0);
	size_t low = 0, high = scopes->n_pcs;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (scopes->pcs[middle].offset < wanted)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < scopes->n_pcs && scopes->pcs[low].scope)
		return scopes->pcs[low].scope;
	return low ? scopes->pcs[low - 1].scope : 0;
}

int jvm_scopes__read(const struct jvm_scopes *scopes, uint32_t scope, struct jvm_scope_place *ret)
{
	struct jvm_stream stream = { .bytes = scopes->data,
				     .size = scopes->size,
				     .at = scope,
				     .is_without_zero = scopes->is_without_zero };
	uint32_t bci;

	ret->caller = jvm_stream__u32(&stream);
	ret->method = jvm_stream__u32(&stream);
	bci = jvm_stream__u32(&stream);
	if (stream.failed || ret->caller >= scope)
		return -EBADMSG;
	ret->bci = bci ? bci - 1 : 0; /* 0: at the method's entry (SynchronizationEntryBCI) */
	return 0;
}
