/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_U64MAP_H
#define BRAID_U64MAP_H

#include <stddef.h>
#include <stdint.h>

/* An open-addressing hash map from a 64-bit key to a 32-bit id. Id 0 means that the key is missing.
 * A zeroed struct is an empty map. */
struct u64map {
	struct u64map_slot {
		uint64_t key;
		uint32_t id;
	} * slots;
	size_t n, cap; /* cap is 0 or a power of two */
};

uint32_t u64map__get(const struct u64map *map, uint64_t key);

/* Adds or replaces the id of @key; @id must not be 0. Returns 0 or -ENOMEM. */
int u64map__put(struct u64map *map, uint64_t key, uint32_t id);

/* Removes all keys; the capacity stays. */
void u64map__clear(struct u64map *map);

void u64map__done(struct u64map *map); /* idempotent; leaves an empty map */

#endif
