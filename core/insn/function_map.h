/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FUNCTION_MAP_H
#define BRAID_FUNCTION_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/elf/elf_file.h"

/* The extents of a file's functions: from their frame descriptions, else from symbols. */
struct function_map;

struct function_extent {
	uint64_t start,
		end; /* link-time addresses; @start must be first, as the key of core/base/sort.h */
	uint64_t lsda; /* as in struct cfi_fde */
};

/* Creates the map of @file, which must outlive it. Malformed descriptions leave functions without
 * extents. Returns 0 or -ENOMEM. */
int function_map__new(const struct elf_file *file, struct function_map **ret);
void function_map__free(struct function_map *map); /* NULL is fine */

/* Reads the pointer at @vaddr after relocation, if the file is loaded at its link-time addresses.
 * Returns false if the file does not contain it. */
bool function_map__pointer(const struct function_map *map, uint64_t vaddr, uint64_t *ret);

const struct elf_file *function_map__file(const struct function_map *map);

/* Returns the extent that contains @vaddr, or NULL. */
const struct function_extent *function_map__find(const struct function_map *map, uint64_t vaddr);

/* Sets *@ret to the bytes from @vaddr on that no extent contains, at most GAP_BYTES_MAX: code that
 * the file does not describe. Returns false if @vaddr is in an extent, or not in code. */
#define GAP_BYTES_MAX (16 << 10)
bool function_map__gap(const struct function_map *map, uint64_t vaddr, struct function_extent *ret);

/* Returns true if another function begins inside the extent. Its calls end by the same returns. */
bool function_map__has_entry(const struct function_map *map, const struct function_extent *extent);

#endif
