/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RANGE_MAP_H
#define BRAID_RANGE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Address ranges with a value each. Where ranges overlap, the one with the highest start wins, then
 * the shortest, then the first added. A zeroed struct is an empty map. */
struct range_map {
	struct range {
		uint64_t start, end;
		uint32_t value;
	} * ranges; /* owned; disjoint and sorted once sealed */
	size_t n, cap;
};

/* Ignores empty and reversed ranges. Returns 0 or -ENOMEM. */
int range_map__add(struct range_map *map, uint64_t start, uint64_t end, uint32_t value);

/* Must be called once, after the last range_map__add() and before the first find. Returns 0 or
 * -ENOMEM. */
int range_map__seal(struct range_map *map);

bool range_map__find(const struct range_map *map, uint64_t address, uint32_t *ret_value);

void range_map__done(struct range_map *map); /* idempotent */

#endif
