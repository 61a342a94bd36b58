// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory_source.h"
#include "core/base/util.h"

struct patched {
	struct memory memory;
	const struct memory *inner;
	struct memory_patch *patches; /* sorted by address */
	size_t n, cap;
};

/* Returns the index of the first patch that ends after @address. */
static size_t first_after(const struct patched *patched, uint64_t address)
{
	size_t low = 0, high = patched->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct memory_patch *patch = &patched->patches[middle];

		if (patch->address + sizeof(patch->word) > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Copies to @to the bytes of the patches in [@address, @address + @size). Returns their number. */
static size_t overlay(const struct patched *patched, uint64_t address, void *to, size_t size)
{
	size_t n = 0;

	for (size_t i = first_after(patched, address); i < patched->n; i++) {
		const struct memory_patch *patch = &patched->patches[i];
		uint64_t start = max_of(patch->address, address);
		uint64_t end = min_of(patch->address + sizeof(patch->word), address + size);

		if (start >= end)
			break;
		memcpy((char *)to + (start - address),
		       (const char *)&patch->word + (start - patch->address), end - start);
		n += end - start;
	}
	return n;
}

static int patched__read(const struct memory *memory, uint64_t address, void *to, size_t size)
{
	const struct patched *patched = (const struct patched *)memory;
	size_t n = overlay(patched, address, to, size);
	int code;

	if (n == size)
		return 0;
	code = memory__read(patched->inner, address, to, size);
	if (!code && n)
		overlay(patched, address, to, size);
	return code;
}

static void patched__free(struct memory *memory)
{
	free(((struct patched *)memory)->patches);
	free(memory);
}

int memory__patched(const struct memory *inner, struct memory **ret)
{
	struct patched *patched = calloc(1, sizeof(*patched));

	if (!patched)
		return -ENOMEM;
	patched->memory = (struct memory) { .read = patched__read, .free = patched__free };
	patched->inner = inner;
	*ret = &patched->memory;
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct memory_patch *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

int memory__patch(struct memory *memory, const struct memory_patch *patches, size_t n)
{
	struct patched *patched = (struct patched *)memory;

	if (array__reserve(&patched->patches, &patched->cap, n, sizeof(*patches)))
		return -ENOMEM;
	if (n) {
		memcpy(patched->patches, patches, n * sizeof(*patches));
		qsort(patched->patches, n, sizeof(*patches), by_address);
	}
	patched->n = n;
	return 0;
}
