// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/replay/spans.h"

#include "core/base/util.h"

int spans__add(struct spans *spans, uint64_t start, uint64_t end)
{
	int ret = array__reserve(&spans->list, &spans->cap, spans->n + 1, sizeof(*spans->list));

	if (!ret && start < end)
		spans->list[spans->n++] = (struct span) { start, end };
	return ret;
}

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

void spans__join(struct spans *spans)
{
	size_t n = 0;

	if (spans->n)
		qsort(spans->list, spans->n, sizeof(*spans->list), by_start);
	for (size_t i = 0; i < spans->n; i++) {
		if (n && spans->list[i].start <= spans->list[n - 1].end)
			spans->list[n - 1].end = max_of(spans->list[n - 1].end, spans->list[i].end);
		else
			spans->list[n++] = spans->list[i];
	}
	spans->n = n;
}

bool spans__meet(const struct spans *spans, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < spans->n; i++)
		if (start < spans->list[i].end && end > spans->list[i].start)
			return true;
	return false;
}

void spans__done(struct spans *spans)
{
	free(spans->list);
	*spans = (struct spans) {};
}
