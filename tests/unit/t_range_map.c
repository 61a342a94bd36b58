// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/range_map.h"
#include "core/base/util.h"
#include "tests/tap.h"

#define ADDRESSES 64

/* Applies the rule of the header word by word. Returns -1 for no range. */
static int holder(const struct range *ranges, size_t n, uint64_t address)
{
	int best = -1;

	for (size_t i = 0; i < n; i++) {
		const struct range *r = &ranges[i];

		if (address < r->start || address >= r->end)
			continue;
		if (best < 0 || r->start > ranges[best].start ||
		    (r->start == ranges[best].start && r->end < ranges[best].end))
			best = i;
	}
	return best;
}

int main(void)
{
	struct range ranges[12];
	uint32_t random = 1, value;
	int wrong = 0, hits = 0;
	struct range_map map = { 0 };

	for (int round = 0; round < 2000; round++) {
		size_t n = round % (ARRAY_SIZE(ranges) + 1);

		for (size_t i = 0; i < n; i++) {
			random = random * 1664525 + 1013904223;
			ranges[i].start = (random >> 8) % ADDRESSES;
			ranges[i].end = (random >> 16) % ADDRESSES;
			if (range_map__add(&map, ranges[i].start, ranges[i].end, i) != 0)
				return 1;
		}
		wrong += range_map__seal(&map) != 0;
		for (uint64_t address = 0; address <= ADDRESSES; address++) {
			int want = holder(ranges, n, address);
			bool found = range_map__find(&map, address, &value);

			hits += found;
			wrong += found ? (int)value != want : want >= 0;
		}
		range_map__done(&map);
	}
	ok(hits > 10000, "%d hits", hits);
	is_int(wrong, 0, "random overlapping ranges");
	return tap__done();
}
