// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/insn/function_map.h"

#include <errno.h>
#include <stdlib.h>

#include "core/arch/arch.h"
#include "core/base/sort.h"
#include "core/base/util.h"
#include "core/elf/cfi_entries.h"
#include "core/elf/elf_section.h"
#include "core/elf/elf_symbols.h"

#define EXTENTS_BACK 8 /* extents between the start of an extent and an address in it */

struct function_map {
	const struct elf_file *file;
	struct function_extent *described, *named; /* sorted by start */
	size_t n_described, cap_described, n_named, cap_named;
	struct relocated *relocated; /* sorted by address */
	size_t n_relocated, cap_relocated;
};

struct relocated { /* a pointer to an address in the file */
	uint64_t at, to;
};

static int add(struct function_extent **list, size_t *n, size_t *cap,
	       const struct function_extent *extent)
{
	if (array__reserve(list, cap, *n + 1, sizeof(**list)))
		return -ENOMEM;
	(*list)[(*n)++] = *extent;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct function_extent *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

static int add_described(struct function_map *map)
{
	struct cfi_entries entries;
	int ret = cfi_entries__read(map->file, &entries, NULL);

	for (size_t i = 0; i < entries.n_fdes && ret != -ENOMEM; i++) {
		const struct cfi_fde *fde = &entries.fdes[i];
		struct function_extent extent = { fde->start, fde->end, fde->lsda };

		if (fde->end > fde->start)
			ret = add(&map->described, &map->n_described, &map->cap_described, &extent);
	}
	cfi_entries__done(&entries);
	return ret == -ENOMEM ? ret : 0;
}

static int add_named(struct function_map *map)
{
	static const char *const sections[] = { ".dynsym", ".symtab" };
	struct elf_symbols symbols;
	int ret = 0;

	for (size_t k = 0; k < ARRAY_SIZE(sections); k++) {
		if (!elf_symbols__open(map->file, sections[k], &symbols))
			continue;
		for (size_t i = 0; i < symbols.n && !ret; i++) {
			struct function_extent extent = {};
			GElf_Sym sym;

			if (!elf_symbols__get(&symbols, i, &sym) || sym.st_shndx == SHN_UNDEF ||
			    GELF_ST_TYPE(sym.st_info) != STT_FUNC ||
			    sym.st_size > UINT64_MAX - sym.st_value)
				continue;
			extent.start = sym.st_value;
			extent.end = sym.st_value + sym.st_size;
			ret = add(&map->named, &map->n_named, &map->cap_named, &extent);
		}
	}
	return ret;
}

static int add_relocated(struct function_map *map)
{
	struct elf_section section;
	size_t n_sections;
	Elf64_Rela rela;

	if (elf_getshdrnum(map->file->elf, &n_sections))
		return 0;
	for (size_t k = 1; k < n_sections; k++) {
		Elf_Data *data =
			!elf_section__at(map->file, k, &section) && section.shdr.sh_type == SHT_RELA
				? elf_section__data(map->file, &section)
				: NULL;

		for (size_t i = 0; elf_file__entry(data, i, &rela, sizeof(rela)); i++) {
			if (map->file->arch->relocation(GELF_R_TYPE(rela.r_info)) !=
			    ARCH_RELOCATION_RELATIVE)
				continue;
			if (array__reserve(&map->relocated, &map->cap_relocated,
					   map->n_relocated + 1, sizeof(*map->relocated)))
				return -ENOMEM;
			map->relocated[map->n_relocated++] =
				(struct relocated) { rela.r_offset, rela.r_addend };
		}
	}
	return 0;
}

static int compare_relocated(const void *a, const void *b)
{
	const struct relocated *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

bool function_map__pointer(const struct function_map *map, uint64_t vaddr, uint64_t *ret)
{
	const struct relocated key = { .at = vaddr }, *found;

	found = map->n_relocated ? bsearch(&key, map->relocated, map->n_relocated, sizeof(key),
					   compare_relocated)
				 : NULL;
	if (found)
		*ret = found->to;
	return found || !elf_file__read(map->file, vaddr, ret, sizeof(*ret));
}

int function_map__new(const struct elf_file *file, struct function_map **ret_map)
{
	struct function_map *map = calloc(1, sizeof(*map));
	int ret = map ? 0 : -ENOMEM;

	if (!ret) {
		map->file = file;
		ret = add_described(map);
	}
	if (!ret)
		ret = add_named(map);
	if (!ret)
		ret = add_relocated(map);
	if (ret) {
		function_map__free(map);
		return ret;
	}
	if (map->n_described)
		qsort(map->described, map->n_described, sizeof(*map->described), compare);
	if (map->n_named)
		qsort(map->named, map->n_named, sizeof(*map->named), compare);
	if (map->n_relocated)
		qsort(map->relocated, map->n_relocated, sizeof(*map->relocated), compare_relocated);
	*ret_map = map;
	return 0;
}

void function_map__free(struct function_map *map)
{
	if (!map)
		return;
	free(map->described);
	free(map->named);
	free(map->relocated);
	free(map);
}

/* Returns the number of extents that start at or below @vaddr. */
static size_t count_up_to(const struct function_extent *list, size_t n, uint64_t vaddr)
{
	return sorted__count_up_to(list, n, sizeof(*list), vaddr);
}

/* Returns the last extent that contains @vaddr, or NULL. A few extents without a size may lie
 * between its start and @vaddr. */
static const struct function_extent *find(const struct function_extent *list, size_t n,
					  uint64_t vaddr)
{
	size_t i = count_up_to(list, n, vaddr), last = i - min_of(i, (size_t)EXTENTS_BACK);

	for (; i > last; i--)
		if (vaddr < list[i - 1].end)
			return &list[i - 1];
	return NULL;
}

const struct function_extent *function_map__find(const struct function_map *map, uint64_t vaddr)
{
	return find(map->described, map->n_described, vaddr)
		       ?: find(map->named, map->n_named, vaddr);
}

bool function_map__has_entry(const struct function_map *map, const struct function_extent *extent)
{
	size_t i = count_up_to(map->named, map->n_named, extent->start);

	return i < map->n_named && map->named[i].start < extent->end;
}

static uint64_t next_start(const struct function_extent *list, size_t n, uint64_t vaddr)
{
	size_t i = count_up_to(list, n, vaddr);

	return i < n ? list[i].start : UINT64_MAX;
}

bool function_map__gap(const struct function_map *map, uint64_t vaddr, struct function_extent *ret)
{
	*ret = (struct function_extent) { .start = vaddr };
	if (function_map__find(map, vaddr))
		return false;
	for (size_t i = 0; i < map->file->n_segments; i++) {
		const struct elf_segment *segment = &map->file->segments[i];

		if (segment->exec && vaddr >= segment->vaddr &&
		    vaddr - segment->vaddr < segment->filesz)
			ret->end = segment->vaddr +
				   min_of(segment->filesz,
					  vaddr - segment->vaddr + (uint64_t)GAP_BYTES_MAX);
	}
	ret->end = min_of(ret->end, next_start(map->described, map->n_described, vaddr));
	ret->end = min_of(ret->end, next_start(map->named, map->n_named, vaddr));
	return ret->end > vaddr;
}

const struct elf_file *function_map__file(const struct function_map *map)
{
	return map->file;
}
