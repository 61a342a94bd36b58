/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RANGE_MAP_H
#define BRAID_RANGE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Address ranges with a value each. Where ranges overlap, the one that starts last holds; of those
 * with one start the shortest, of equal ones the first added. All zero is an empty map. */
struct range_map {
	struct range {
		uint64_t start, end;
		uint32_t value;
	} * ranges; /* owned; disjoint and in order once sealed */
	size_t n, cap;
};

/* Empty and reversed ranges are left out. 0 or -ENOMEM. */
int range_map__add(struct range_map *map, uint64_t start, uint64_t end, uint32_t value);

/* To be called once, after the last add and before the first find. 0 or -ENOMEM. */
int range_map__seal(struct range_map *map);

bool range_map__find(const struct range_map *map, uint64_t address, uint32_t *ret_value);

void range_map__done(struct range_map *map); /* idempotent */

#endif
