/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FUNCTION_MAP_H
#define BRAID_FUNCTION_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/elf/elf_file.h"

/* Where the functions of a file begin and end: by their frame descriptions, else by symbols. */
struct function_map;

struct function_extent {
	uint64_t start,
		end;   /* link-time addresses; `start` is first: the key of core/base/sort.h */
	uint64_t lsda; /* as in struct cfi_fde */
};

/* -ENOMEM. `file` must outlive the map. Malformed descriptions leave functions without extents. */
int function_map__new(const struct elf_file *file, struct function_map **ret);
void function_map__free(struct function_map *map); /* NULL is fine */

/* Reads the pointer that lies at @vaddr once the dynamic linker has loaded the file at its
 * link-time addresses. False: the file does not say. */
bool function_map__pointer(const struct function_map *map, uint64_t vaddr, uint64_t *ret);

const struct elf_file *function_map__file(const struct function_map *map);

/* Returns the extent that holds @vaddr, or NULL. */
const struct function_extent *function_map__find(const struct function_map *map, uint64_t vaddr);

/* Returns in @ret the bytes from @vaddr on that no extent holds, GAP_BYTES_MAX at most: code of
 * which the file says nothing. False: @vaddr lies in an extent, or in no code. */
#define GAP_BYTES_MAX (16 << 10)
bool function_map__gap(const struct function_map *map, uint64_t vaddr, struct function_extent *ret);

/* Does another function begin inside of the extent? Its calls end by the same returns. */
bool function_map__has_entry(const struct function_map *map, const struct function_extent *extent);

#endif
