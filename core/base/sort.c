// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/sort.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/util.h"

#define RUN 1024 /* elements of each call of qsort() */

struct sort {
	size_t n, size, done;
	int (*compare)(const void *a, const void *b);
};

/* Merges two neighbouring runs of @from, [@at, @middle) and [@middle, @end), into @to. */
static int merge(struct sort *sort, const char *from, char *to, size_t at, size_t middle,
		 size_t end)
{
	const char *left = from + at * sort->size, *left_end = from + middle * sort->size;
	const char *right = left_end, *right_end = from + end * sort->size;

	to += at * sort->size;
	while (left < left_end || right < right_end) {
		bool takes_left =
			right == right_end || (left < left_end && sort->compare(left, right) <= 0);
		const char **next = takes_left ? &left : &right;
		int ret = ++sort->done % RUN ? 0 : quota__look();

		if (ret)
			return ret;
		memcpy(to, *next, sort->size);
		*next += sort->size;
		to += sort->size;
	}
	return 0;
}

static int sort_runs(struct sort *sort, char *array)
{
	int ret = 0;

	for (size_t at = 0; at < sort->n && !ret; at += RUN) {
		qsort(array + at * sort->size, min_of(sort->n - at, (size_t)RUN), sort->size,
		      sort->compare);
		ret = quota__look();
	}
	return ret;
}

int sort__array(void *array, size_t n, size_t size, int (*compare)(const void *, const void *))
{
	struct sort sort = { .n = n, .size = size, .compare = compare };
	char *spare, *from = array, *to, *swapped;
	int ret = n ? sort_runs(&sort, array) : 0;

	if (ret || n <= RUN)
		return ret;
	if (n > SIZE_MAX / size)
		return -ENOMEM;
	spare = to = malloc(n * size);
	if (!spare)
		return -ENOMEM;
	for (size_t run = RUN; run < n && !ret; run *= 2) {
		for (size_t at = 0; at < n && !ret; at += 2 * run)
			ret = merge(&sort, from, to, at, min_of(at + run, n),
				    min_of(at + 2 * run, n));
		if (ret)
			break;
		swapped = from;
		from = to;
		to = swapped;
	}
	if (from == spare)
		memcpy(array, spare, n * size);
	free(spare);
	return ret;
}

size_t sorted__count_up_to(const void *array, size_t n, size_t size, uint64_t key)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		uint64_t found;

		memcpy(&found, (const char *)array + mid * size, sizeof(found));
		if (found <= key)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}
