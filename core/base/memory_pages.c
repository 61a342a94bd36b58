// SPDX-License-Identifier: GPL-2.0-or-later
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory_source.h"
#include "core/base/util.h"

/* The ranges are sorted by start and do not overlap. One binary search finds the start of a read,
 * and the ranges after it continue the read. */
struct range {
	uint64_t start, end;
	unsigned char *bytes; /* owned; NULL: mapped, but not recorded */
};

struct ranges {
	struct range *list;
	size_t n, cap;
};

struct pages {
	struct memory memory;
	struct ranges recorded, mapped;
};

/* Returns the index of the first range that ends above @address. */
static size_t ranges__find(const struct ranges *ranges, uint64_t address)
{
	size_t lo = 0, hi = ranges->n, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (ranges->list[mid].end <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Takes ownership of @bytes on success. */
static int ranges__add(struct ranges *ranges, uint64_t start, uint64_t end, unsigned char *bytes)
{
	size_t at = ranges__find(ranges, start);
	int ret;

	if (end <= start || (at < ranges->n && ranges->list[at].start < end))
		return -EINVAL;
	ret = array__reserve(&ranges->list, &ranges->cap, ranges->n + 1, sizeof(*ranges->list));
	if (ret)
		return ret;
	memmove(&ranges->list[at + 1], &ranges->list[at], (ranges->n - at) * sizeof(*ranges->list));
	ranges->list[at] = (struct range) { start, end, bytes };
	ranges->n++;
	return 0;
}

static void ranges__done(struct ranges *ranges)
{
	for (size_t i = 0; i < ranges->n; i++)
		free(ranges->list[i].bytes);
	free(ranges->list);
}

/* Returns the number of bytes from @address that the ranges cover without a gap. Copies them to @to
 * unless that is NULL. */
static size_t ranges__cover(const struct ranges *ranges, uint64_t address, char *to, size_t size)
{
	size_t done = 0;

	for (size_t i = ranges__find(ranges, address); done < size && i < ranges->n; i++) {
		const struct range *range = &ranges->list[i];
		size_t n;

		if (address + done < range->start)
			break;
		n = min_of(size - done, range->end - (address + done));
		if (to)
			memcpy(to + done, range->bytes + (address + done - range->start), n);
		done += n;
	}
	return done;
}

static int pages__read(const struct memory *memory, uint64_t address, void *to, size_t size)
{
	const struct pages *pages = (const struct pages *)memory;

	if (address + size < address)
		return -EFAULT;
	if (ranges__cover(&pages->recorded, address, to, size) == size)
		return 0;
	return ranges__cover(&pages->mapped, address, NULL, size) == size ? -ENODATA : -EFAULT;
}

static void pages__free(struct memory *memory)
{
	struct pages *pages = (struct pages *)memory;

	ranges__done(&pages->recorded);
	ranges__done(&pages->mapped);
	free(pages);
}

int memory__of_pages(struct memory **ret)
{
	struct pages *pages = calloc(1, sizeof(*pages));

	if (!pages)
		return -ENOMEM;
	pages->memory.read = pages__read;
	pages->memory.free = pages__free;
	*ret = &pages->memory;
	return 0;
}

int memory__add_mapping(struct memory *memory, uint64_t start, uint64_t end)
{
	assert(memory->read == pages__read);
	return ranges__add(&((struct pages *)memory)->mapped, start, end, NULL);
}

int memory__add_bytes(struct memory *memory, uint64_t address, const void *bytes, size_t size)
{
	struct pages *pages = (struct pages *)memory;
	unsigned char *copy = size ? malloc(size) : NULL;
	int ret;

	assert(memory->read == pages__read);
	if (!copy)
		return size ? -ENOMEM : -EINVAL;
	memcpy(copy, bytes, size);
	ret = ranges__add(&pages->recorded, address, address + size, copy);
	if (ret)
		free(copy);
	return ret;
}

int memory__add_missing(struct memory *memory, uint64_t address, const void *bytes, size_t size)
{
	const struct ranges *recorded = &((const struct pages *)memory)->recorded;
	uint64_t at = address, end = address + size;
	int ret = 0;

	assert(memory->read == pages__read);
	if (end < address)
		return -EINVAL;
	while (!ret && at < end) {
		size_t i = ranges__find(recorded, at);
		const struct range *next = i < recorded->n ? &recorded->list[i] : NULL;
		uint64_t to = next ? min_of(end, max_of(next->start, at)) : end;

		if (to > at)
			ret = memory__add_bytes(memory, at, (const char *)bytes + (at - address),
						to - at);
		else
			to = next->end;
		at = to;
	}
	return ret;
}
