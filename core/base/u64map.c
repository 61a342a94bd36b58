// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/u64map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t slot_of(const struct u64map *map, uint64_t key)
{
	uint64_t hash = key * 0x9e3779b97f4a7c15ULL; /* Fibonacci hashing: the top bits are mixed */
	size_t at = (hash ^ hash >> 32) & (map->cap - 1);

	while (map->slots[at].id && map->slots[at].key != key)
		at = (at + 1) & (map->cap - 1);
	return at;
}

uint32_t u64map__get(const struct u64map *map, uint64_t key)
{
	return map->cap ? map->slots[slot_of(map, key)].id : 0;
}

static int grow(struct u64map *map)
{
	struct u64map bigger = { .cap = map->cap ? map->cap * 2 : 64, .n = map->n };
	size_t i;

	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (i = 0; i < map->cap; i++)
		if (map->slots[i].id)
			bigger.slots[slot_of(&bigger, map->slots[i].key)] = map->slots[i];
	free(map->slots);
	*map = bigger;
	return 0;
}

int u64map__put(struct u64map *map, uint64_t key, uint32_t id)
{
	struct u64map_slot *slot;

	if (map->n * 2 >= map->cap && grow(map))
		return -ENOMEM;
	slot = &map->slots[slot_of(map, key)];
	map->n += !slot->id;
	*slot = (struct u64map_slot) { key, id };
	return 0;
}

void u64map__clear(struct u64map *map)
{
	if (map->cap)
		memset(map->slots, 0, map->cap * sizeof(*map->slots));
	map->n = 0;
}

void u64map__done(struct u64map *map)
{
	free(map->slots);
	*map = (struct u64map) {};
}
