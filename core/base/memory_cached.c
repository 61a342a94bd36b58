// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory_source.h"
#include "core/base/util.h"

/* The cache holds whole pages. A system call that reads a page takes hardly longer than one that
 * reads a word, and the next read is mostly near. */
#define PAGE	    4096ULL
#define PAGES	    1024 /* a power of two */
#define PAGE_OF(at) ((at) / PAGE)

struct page {
	unsigned char bytes[PAGE];
};

struct cached {
	struct memory memory;
	const struct memory *inner;
	struct page *pages;
	uint64_t numbers[PAGES]; /* page number + 1 of each slot; 0: empty */
};

static const struct page *page_of(struct cached *cached, uint64_t number)
{
	size_t at = number % PAGES;

	if (cached->numbers[at] == number + 1)
		return &cached->pages[at];
	cached->numbers[at] = 0;
	if (memory__read(cached->inner, number * PAGE, cached->pages[at].bytes, PAGE))
		return NULL;
	cached->numbers[at] = number + 1;
	return &cached->pages[at];
}

static int cached__read(const struct memory *memory, uint64_t address, void *to, size_t size)
{
	struct cached *cached = (struct cached *)memory;
	size_t done = 0, n;

	if (address + size < address)
		return -EFAULT;
	for (; done < size; done += n) {
		uint64_t at = address + done;
		const struct page *page = page_of(cached, PAGE_OF(at));

		n = min_of(size - done, PAGE - at % PAGE);
		if (page)
			memcpy((char *)to + done, page->bytes + at % PAGE, n);
		else if (memory__read(cached->inner, at, (char *)to + done, n))
			return -EFAULT; /* a core file may have a part of the page */
	}
	return 0;
}

static void cached__free(struct memory *memory)
{
	free(((struct cached *)memory)->pages);
	free(memory);
}

int memory__cached(const struct memory *inner, struct memory **ret)
{
	struct cached *cached = calloc(1, sizeof(*cached));

	if (!cached)
		return -ENOMEM;
	cached->memory = (struct memory) { .read = cached__read, .free = cached__free };
	cached->inner = inner;
	cached->pages = calloc(PAGES, sizeof(*cached->pages));
	if (!cached->pages) {
		free(cached);
		return -ENOMEM;
	}
	*ret = &cached->memory;
	return 0;
}

void memory__forget(struct memory *memory)
{
	struct cached *cached = (struct cached *)memory;

	memset(cached->numbers, 0, sizeof(cached->numbers));
}
