// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory_source.h"
#include "core/base/util.h"

struct patched {
	struct memory memory;
	const struct memory *inner;
	struct memory_patch *patches;
	size_t n, cap;
};

/* Bytes of the patches in [address, address + size), which `to` gets. */
static size_t overlay(const struct patched *patched, uint64_t address, void *to, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < patched->n; i++) {
		const struct memory_patch *patch = &patched->patches[i];
		uint64_t start = max_of(patch->address, address);
		uint64_t end = min_of(patch->address + sizeof(patch->word), address + size);

		if (start >= end)
			continue;
		memcpy((char *)to + (start - address),
		       (const char *)&patch->word + (start - patch->address), end - start);
		n += end - start;
	}
	return n;
}

static int patched__read(const struct memory *memory, uint64_t address, void *to, size_t size)
{
	const struct patched *patched = (const struct patched *)memory;
	int code = memory__read(patched->inner, address, to, size);

	return overlay(patched, address, to, size) == size ? 0 : code;
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

int memory__patch(struct memory *memory, const struct memory_patch *patches, size_t n)
{
	struct patched *patched = (struct patched *)memory;

	if (array__reserve(&patched->patches, &patched->cap, n, sizeof(*patches)))
		return -ENOMEM;
	if (n)
		memcpy(patched->patches, patches, n * sizeof(*patches));
	patched->n = n;
	return 0;
}
