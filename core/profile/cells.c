// SPDX-License-Identifier: GPL-2.0-or-later
/* Samples over time: profile__add_cell. */
#include <errno.h>
#include <stdlib.h>

#include "core/base/util.h"
#include "core/profile/profile.h"

#define COLUMNS_MIN 50 /* fewer tell nothing of what was when */

int profile__add_cell(struct profile *profile, const struct profile_cell *cell)
{
	if (array__reserve(&profile->cells, &profile->cap_cells, profile->n_cells + 1,
			   sizeof(*profile->cells)))
		return -ENOMEM;
	profile->cells[profile->n_cells++] = *cell;
	return 0;
}

static int order(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

static int compare(const void *left, const void *right)
{
	const struct profile_cell *a = left, *b = right;
	int by = order(a->column, b->column);

	if (!by)
		by = order(a->thread, b->thread);
	if (!by)
		by = order(a->node, b->node);
	return by ? by : order(a->state, b->state);
}

static void join(struct profile *profile)
{
	struct profile_cell *cells = profile->cells;
	size_t n = 0;

	qsort(cells, profile->n_cells, sizeof(*cells), compare);
	for (size_t i = 0; i < profile->n_cells; i++) {
		if (!n || compare(&cells[n - 1], &cells[i]))
			cells[n++] = cells[i];
		else if (__builtin_add_overflow(cells[n - 1].weight, cells[i].weight,
						&cells[n - 1].weight))
			cells[n - 1].weight = UINT64_MAX;
	}
	profile->n_cells = n;
}

void profile__finish_cells(struct profile *profile, size_t most)
{
	if (!profile->n_cells)
		return;
	join(profile);
	while (profile->n_cells > most && profile->n_columns >= 2 * COLUMNS_MIN) {
		for (size_t i = 0; i < profile->n_cells; i++)
			profile->cells[i].column /= 2;
		profile->n_columns = (profile->n_columns + 1) / 2;
		profile->column_ns *= 2;
		join(profile);
	}
	if (profile->n_cells > most)
		profile->n_cells = 0;
}
