// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/store/load_columns.h"

#include <stddef.h>

#include "core/base/util.h"

/* The maximum number of columns. If columns would then be wider than COLUMN_NS, there are more of
 * them, up to COLUMNS_LIMIT. */
#define COLUMNS_MAX   4000
#define COLUMN_NS     50000000
#define COLUMNS_LIMIT 20000

/* Returns the shortest width among 1, 2, 5, 10, ... ms that divides @duration_ns into at most
 * @columns columns. A second, or ten seconds, thus have a whole number of columns. */
static uint64_t find_width(uint64_t duration_ns, uint64_t columns)
{
	static const uint64_t steps[] = { 1000000, 2000000, 5000000 };
	uint64_t scale = 1;

	for (size_t i = 0;; i = (i + 1) % ARRAY_SIZE(steps)) {
		if (duration_ns / columns < steps[i] * scale)
			return steps[i] * scale;
		if (i + 1 == ARRAY_SIZE(steps))
			scale *= 10;
	}
}

void load_columns__divide(uint64_t first_ns, uint64_t last_ns, bool instants,
			  struct recorded_columns *ret)
{
	uint64_t width_ns = find_width(last_ns - first_ns, COLUMNS_MAX);

	if (width_ns > COLUMN_NS)
		width_ns =
			max_of(find_width(last_ns - first_ns, COLUMNS_LIMIT), (uint64_t)COLUMN_NS);
	if (instants)
		width_ns = 1;
	*ret = (struct recorded_columns) { .first_ns = first_ns,
					   .width_ns = width_ns,
					   .n = (last_ns - first_ns) / width_ns + 1 };
}
