// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/nearest.h"

#include <stdio.h>
#include <string.h>

#include "core/base/util.h"

struct nearest nearest__to(const char *requested, size_t len)
{
	struct nearest nearest = {};

	memcpy(nearest.requested, requested, min_of(len, sizeof(nearest.requested) - 1));
	return nearest;
}

/* Returns the Levenshtein distance: the number of characters to add, remove or replace. */
static unsigned distance_of(const char *a, const char *b)
{
	size_t n_a = strlen(a), n_b = strlen(b);
	unsigned row[NEAREST_BYTES], diagonal, above;

	for (size_t i = 0; i <= n_a; i++)
		row[i] = i;
	for (size_t k = 1; k <= n_b; k++) {
		diagonal = row[0];
		row[0] = k;
		for (size_t i = 1; i <= n_a; i++) {
			above = row[i];
			row[i] = min_of(min_of(row[i], row[i - 1]) + 1,
					diagonal + (a[i - 1] != b[k - 1]));
			diagonal = above;
		}
	}
	return row[n_a];
}

/* Adds @name if a third of its characters at most differ, or if the user's text is its prefix. */
void nearest__add(struct nearest *nearest, const char *name)
{
	size_t len = strlen(nearest->requested), at;
	unsigned distance;

	if (!len || strlen(name) >= NEAREST_BYTES)
		return;
	distance = distance_of(nearest->requested, name);
	if (distance > (len + 2) / 3 && strncmp(name, nearest->requested, len))
		return;
	for (at = nearest->n; at && nearest->list[at - 1].distance > distance; at--)
		if (at < NEAREST_N)
			nearest->list[at] = nearest->list[at - 1];
	if (at == NEAREST_N)
		return;
	snprintf(nearest->list[at].name, NEAREST_BYTES, "%s", name);
	nearest->list[at].distance = distance;
	if (nearest->n < NEAREST_N)
		nearest->n++;
}

const char *nearest__text(struct nearest *nearest)
{
	size_t used = 0;

	nearest->text[0] = '\0';
	for (size_t i = 0; i < nearest->n; i++)
		used += snprintf(nearest->text + used, sizeof(nearest->text) - used, "%s%s",
				 !i		      ? ""
				 : i + 1 < nearest->n ? ", "
						      : " or ",
				 nearest->list[i].name);
	return nearest->text;
}
