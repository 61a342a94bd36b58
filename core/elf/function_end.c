// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/function_end.h"

#include "core/base/util.h"
#include "core/elf/disassembly.h"

/* Limit of a function without a size, in bytes. Such functions are hand-written assembly. Bounds
 * the work for a hostile file. */
#define BYTES_MAX 4096

struct walk {
	uint64_t start, at;
	uint64_t end;	/* start of the next function (the lowest call target above @start), or the
			   limit */
	uint64_t reach; /* highest target of a conditional jump */
};

static int take(void *ctx, const struct instruction *instruction)
{
	struct walk *walk = ctx;
	uint64_t target = instruction->target;

	if (instruction->flow == FLOW_BRANCH && target < walk->end)
		walk->reach = max_of(walk->reach, target);
	else if (instruction->flow == FLOW_ON && target > walk->start)
		walk->end = min_of(walk->end, target);
	walk->at = instruction->address + instruction->size;
	return walk->at >= walk->end ||
	       (instruction->flow == FLOW_LEAVES && walk->reach < walk->at);
}

uint64_t function_end__find(const struct elf_file *file, uint64_t start, uint64_t end)
{
	uint8_t code[BYTES_MAX];
	size_t size = min_of(end - start, (uint64_t)sizeof(code));
	struct walk walk = { .start = start, .at = start, .end = start + size };

	if (elf_file__read(file, start, code, size) != 0 ||
	    disassembly__run(code, size, start, take, &walk) < 0)
		return start;
	return min_of(walk.at, walk.end);
}
