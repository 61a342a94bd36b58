// SPDX-License-Identifier: GPL-2.0-or-later
/* Samples over time: profile__add_cell(). */
#include <errno.h>
#include <stdlib.h>

#include "core/base/util.h"
#include "core/profile/profile.h"

#define COLUMNS_MIN 50 /* fewer columns do not show the course of events */

int profile__add_cell(struct profile *profile, const struct profile_cell *cell)
{
	if (array__reserve(&profile->cells, &profile->cap_cells, profile->n_cells + 1,
			   sizeof(*profile->cells)))
		return -ENOMEM;
	profile->cells[profile->n_cells++] = *cell;
	return 0;
}

static int order(uint64_t a, uint64_t b)
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

/* Returns the factor to the next width of the series 1, 2, 5, 10, 20, 50, ... */
static unsigned next_factor(uint64_t width)
{
	while (width >= 10)
		width /= 10;
	return width == 2 ? 5 : 2;
}

void profile__finish_cells(struct profile *profile, size_t most)
{
	unsigned by = next_factor(profile->column_ns);

	if (!profile->n_cells)
		return;
	join(profile);
	for (; profile->n_cells > most && profile->n_columns >= by * COLUMNS_MIN;
	     by = next_factor(profile->column_ns)) {
		for (size_t i = 0; i < profile->n_cells; i++)
			profile->cells[i].column /= by;
		profile->n_columns = (profile->n_columns + by - 1) / by;
		profile->column_ns *= by;
		join(profile);
	}
	if (profile->n_cells > most)
		profile->n_cells = 0;
}
