// SPDX-License-Identifier: GPL-2.0-or-later
/* Sorted ranges over 64-bit addresses, where inner ranges win over those around them.
 *
 * Ranges are added in any order and then sealed. One sweep by start, with the open ranges on a
 * stack, cuts each range at those inside it. The resulting ranges neither overlap nor nest, so that
 * a look-up is a binary search. Sealing takes O(n log n) for the sort and O(n) for the sweep, as
 * every range is opened once and closed once. */
#include "core/base/range_map.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/sort.h"
#include "core/base/util.h"

int range_map__add(struct range_map *map, uint64_t start, uint64_t end, uint32_t value)
{
	if (start >= end)
		return 0;
	if (array__reserve(&map->ranges, &map->cap, map->n + 1, sizeof(*map->ranges)) != 0)
		return -ENOMEM;
	map->ranges[map->n++] = (struct range) { .start = start, .end = end, .value = value };
	return 0;
}

/* Sorts enclosing ranges before those inside them. */
static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return x->value > y->value ? -1 : x->value < y->value;
}

static void emit(struct range_map *map, uint64_t start, const struct range *range, uint64_t end)
{
	if (start < end)
		map->ranges[map->n++] =
			(struct range) { .start = start, .end = end, .value = range->value };
}

int range_map__seal(struct range_map *map)
{
	struct range_map flat = { 0 };
	const struct range **open = NULL; /* the innermost range is last */
	size_t n_open = 0;
	uint64_t at = 0;
	int rc = -ENOMEM;

	if (!map->n)
		return 0;
	rc = sort__array(map->ranges, map->n, sizeof(*map->ranges), by_start);
	if (rc)
		return rc;
	rc = -ENOMEM;
	open = calloc(map->n, sizeof(*open));
	if (!open || array__reserve(&flat.ranges, &flat.cap, 2 * map->n, sizeof(*flat.ranges)) != 0)
		goto out;
	for (size_t i = 0; i <= map->n; i++) {
		uint64_t next = i < map->n ? map->ranges[i].start : UINT64_MAX;

		while (n_open && open[n_open - 1]->end <= next) {
			const struct range *closed = open[--n_open];

			emit(&flat, at, closed, closed->end);
			at = max_of(at, closed->end);
		}
		if (n_open)
			emit(&flat, at, open[n_open - 1], next);
		at = next;
		if (i < map->n)
			open[n_open++] = &map->ranges[i];
	}
	assert(!n_open &&
	       flat.n < 2 * map->n); /* each range is cut at most once per range inside */
	range_map__done(map);
	*map = flat;
	flat = (struct range_map) { 0 };
	rc = 0;
out:
	range_map__done(&flat);
	free(open);
	return rc;
}

bool range_map__find(const struct range_map *map, uint64_t address, uint32_t *ret_value)
{
	size_t low = 0, high = map->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (map->ranges[mid].end <= address)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == map->n || map->ranges[low].start > address)
		return false;
	*ret_value = map->ranges[low].value;
	return true;
}

void range_map__done(struct range_map *map)
{
	free(map->ranges);
	*map = (struct range_map) { 0 };
}
