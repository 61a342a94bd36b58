// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/alloc_function.h"

#include <errno.h>

#include "core/base/util.h"
#include "core/insn/function_map.h"
#include "core/insn/function_returns.h"

static void find_text(const struct elf_file *file, uint64_t vaddr, struct alloc_function *code)
{
	for (size_t i = 0; i < file->n_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];

		if (segment->exec && vaddr - segment->vaddr < segment->memsz) {
			code->text_from = segment->vaddr - vaddr;
			code->text_bytes = segment->memsz;
		}
	}
}

/* Returns when a function ends by a jump, if its code has such a jump. A function that also frees
 * does not need another function while there are bytes to copy. */
static enum alloc_jumps when(const struct alloc_site *site)
{
	if (site->wraps)
		return ALLOC_JUMPS;
	if (ALLOC_FREES(site->cookie))
		return ALLOC_JUMPS_FOR_NULL;
	if (site->aligns)
		return ALLOC_JUMPS_IF_SMALL;
	return site->pages ? ALLOC_JUMPS_NEVER : ALLOC_JUMPS;
}

int alloc_function__find(const struct elf_file *file, const struct alloc_site *sites, size_t n,
			 struct alloc_function *ret_list)
{
	const struct function_extent *extent;
	uint64_t starts[ALLOC_SITES_MAX];
	struct function_map *map;
	int ret = function_map__new(file, &map), jumps;

	for (size_t i = 0; i < n; i++)
		starts[i] = sites[i].vaddr;
	for (size_t i = 0; !ret && i < n; i++) {
		struct alloc_function *code = &ret_list[i];

		*code = (struct alloc_function) {};
		find_text(file, starts[i], code);
		extent = function_map__find(map, starts[i]);
		if (extent && extent->start == starts[i])
			code->bytes = extent->end - extent->start;
		jumps = ALLOC_NESTS(sites[i].cookie)
				? function_returns__end_elsewhere(map, starts[i], starts, n)
				: 0;
		if (jumps == -ENOMEM)
			ret = jumps;
		else if (jumps)
			code->jumps = when(&sites[i]);
	}
	function_map__free(map);
	return ret;
}
