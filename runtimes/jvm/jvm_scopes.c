// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_scopes.h"

#include <errno.h>

#include "core/elf/disassembly.h"
#include "runtimes/jvm/jvm_stream.h"

/* Returns the index of the first described place at or after @offset. */
static size_t find_place(const struct jvm_scopes *scopes, int64_t offset)
{
	size_t low = 0, high = scopes->n_pcs;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (scopes->pcs[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t jvm_scopes__at(const struct jvm_scopes *scopes, uint32_t pc_offset, bool exact)
{
	size_t low = find_place(scopes, (int64_t)pc_offset + (exact ? 1 : 0));

	if (low < scopes->n_pcs && scopes->pcs[low].scope)
		return scopes->pcs[low].scope;
	return low ? scopes->pcs[low - 1].scope : 0;
}

bool jvm_scopes__describe(const struct jvm_scopes *scopes, uint32_t pc_offset)
{
	size_t at = find_place(scopes, pc_offset);

	return at < scopes->n_pcs && scopes->pcs[at].offset == (int64_t)pc_offset &&
	       scopes->pcs[at].scope;
}

bool jvm_scopes__agree(const struct jvm_scopes *scopes, uint32_t pc_offset, uint32_t *ret_start,
		       uint32_t *ret_end)
{
	size_t next = find_place(scopes, (int64_t)pc_offset + 1);
	struct jvm_scope_place before, after;

	if (!next || next >= scopes->n_pcs || !scopes->pcs[next - 1].scope ||
	    !scopes->pcs[next].scope)
		return false;
	*ret_start = scopes->pcs[next - 1].offset;
	*ret_end = scopes->pcs[next].offset;
	return !jvm_scopes__read(scopes, scopes->pcs[next - 1].scope, &before) &&
	       !jvm_scopes__read(scopes, scopes->pcs[next].scope, &after) &&
	       before.method == after.method && before.caller == after.caller;
}

struct path {
	size_t end;
	bool has_end; /* the instruction at `end` does not jump */
};

static int path__take(void *ctx, const struct instruction *instruction)
{
	struct path *path = ctx;

	if (instruction->flow != FLOW_ON)
		return 1;
	path->has_end = instruction->address == path->end;
	return instruction->address >= path->end;
}

/* Returns true if the instruction sets a register to a constant. */
static bool is_constant(const uint8_t *code)
{
	code += (*code & 0xf0) == 0x40;							  /* REX */
	return (*code & 0xf8) == 0xb8 ||						  /* mov */
	       ((*code == 0x31 || *code == 0x33) && (code[1] & 7) == (code[1] >> 3 & 7)); /* xor */
}

bool jvm_scopes__prove(const uint8_t *code, size_t at, size_t end)
{
	struct path path = { .end = end };

	disassembly__run(code + at, end - at + INSTRUCTION_BYTES_MAX, at, path__take, &path);
	return path.has_end && !is_constant(code) && !is_constant(code + end);
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
	ret->bci = bci ? bci - 1 : 0; /* 0: the method's entry (SynchronizationEntryBCI) */
	return 0;
}
