// SPDX-License-Identifier: GPL-2.0-or-later
/* Ruby's heap consists of pages of 16 (3.1 and before) or 64 KiB, aligned to their size. A page
 * begins with the address of its struct heap_page, which has the address of the page's first
 * slot (gc.c, from 3.4 on gc/default/default.c). rb_objspace_t has a list of all pages, sorted
 * by the address of their memory.
 *
 * The list, and the field for the first slot, are recognised by these two addresses, which must
 * agree, in any layout of a build. Pages are large if all of them are aligned to 64 KiB. Within
 * a page, an object is recognised by its type, so that the size of slots is not needed. */
#include "runtimes/ruby/ruby_heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/u64map.h"
#include "core/base/util.h"

#define WORD	     8
#define SPACE_WORDS  512	/* searched words of rb_objspace_t */
#define PAGE_WORDS   32		/* searched words of struct heap_page */
#define HEADER_MAX   2048	/* limit for a page's header, before its first slot */
#define PAGES_MAX    (1U << 17) /* 8 GiB */
#define SMALL_BYTES  16384
#define LARGE_BYTES  65536
#define DARRAY_BYTES 16 /* rb_darray_meta_t, from 3.4 on before the elements */

/* include/ruby/internal/core/rtypeddata.h: flags, class, type, typed_flag, data. 4.0 has another
 * word before the type, which has the flag. */
#define TYPE_MASK  0x1f
#define TYPE_DATA  0x0c
#define DATA_WORDS 5

struct walk {
	struct ruby_reader *reader;
	const char *type;
	struct u64map types; /* by address; 1: another type, 2: the requested type */
	uint64_t list;	     /* array of pages */
	uint32_t n_pages;
	uint32_t start_at; /* offset of the first slot in struct heap_page */
	uint32_t page_bytes;
	bool skipped; /* a page was unreadable */
	uint64_t words[LARGE_BYTES / WORD];
};

/* Returns the start of a page's memory; 0: not a page. */
static uint64_t body_of(struct walk *walk, uint64_t page)
{
	uint64_t start = ruby_reader__word(walk->reader, page + walk->start_at);
	uint64_t body = start & ~(uint64_t)(SMALL_BYTES - 1); /* the first slot is near */

	return start && ruby_reader__word(walk->reader, body) == page ? body : 0;
}

/* Returns the memory of the list's page @i; 0: the list has no more pages. After the last page,
 * older entries may remain. */
static uint64_t body_at(struct walk *walk, uint64_t list, uint32_t i, uint64_t last)
{
	uint64_t page = ruby_reader__word(walk->reader, list + (uint64_t)i * WORD);
	uint64_t body = page ? body_of(walk, page) : 0;

	return body > last ? body : 0;
}

/* Returns true, and sets start_at, if the list begins with a page. */
static bool begins_list(struct walk *walk, uint64_t list)
{
	uint64_t page = ruby_reader__word(walk->reader, list), words[PAGE_WORDS];

	if (!ruby_value__is_object(page) ||
	    !ruby_reader__read(walk->reader, page, words, sizeof(words)))
		return false;
	for (size_t i = 0; i < PAGE_WORDS; i++) {
		uint64_t into = words[i] & (SMALL_BYTES - 1);

		if (!ruby_value__is_object(words[i]) || !into || into > HEADER_MAX ||
		    ruby_reader__word(walk->reader, words[i] - into) != page)
			continue;
		walk->start_at = i * WORD;
		return true;
	}
	return false;
}

/* Uses the list if it has more pages than the one found so far: other lists than that of all
 * pages have fewer. */
static void see_list(struct walk *walk, uint64_t list)
{
	uint32_t start_at = walk->start_at, n = 0;
	uint64_t last = 0, bits = 0;

	if (!begins_list(walk, list))
		return;
	for (; n < PAGES_MAX && (last = body_at(walk, list, n, last)); n++)
		bits |= last;
	if (n <= walk->n_pages) {
		walk->start_at = start_at;
		return;
	}
	walk->list = list;
	walk->n_pages = n;
	walk->page_bytes = bits & (LARGE_BYTES - 1) ? SMALL_BYTES : LARGE_BYTES;
}

static void find_list(struct walk *walk, uint64_t vm)
{
	uint64_t space =
		ruby_reader__word(walk->reader, vm + walk->reader->rec.offsets.vm_objspace);
	uint64_t words[SPACE_WORDS];
	size_t n = SPACE_WORDS;

	/* The struct may lie at the end of mapped memory. */
	while (n && !ruby_reader__read(walk->reader, space, words, n * WORD))
		n /= 2;
	for (size_t i = 0; i < n; i++) {
		if (!ruby_value__is_object(words[i]))
			continue;
		see_list(walk, words[i]);
		see_list(walk, words[i] + DARRAY_BYTES);
	}
}

static bool is_type(struct walk *walk, uint64_t type)
{
	char text[16] = "";
	size_t size = min_of(strlen(walk->type) + 1, sizeof(text));
	uint32_t known;

	if (!ruby_value__is_object(type))
		return false;
	known = u64map__get(&walk->types, type);
	if (known)
		return known == 2;
	known = ruby_reader__read(walk->reader, ruby_reader__word(walk->reader, type), text,
				  size) &&
				!strncmp(text, walk->type, size)
			? 2
			: 1;
	u64map__put(&walk->types, type, known); /* if this fails, the type is read again */
	return known == 2;
}

static int see_page(struct walk *walk, uint64_t body, ruby_data_fn on_data, void *ctx)
{
	size_t n = walk->page_bytes / WORD;
	int ret = 0;

	if (!ruby_reader__read(walk->reader, body, walk->words, walk->page_bytes)) {
		walk->skipped = true;
		return 0;
	}
	for (size_t i = 1; !ret && i + DATA_WORDS <= n; i++) {
		const uint64_t *words = &walk->words[i];
		bool is_typed = (words[3] & ~(uint64_t)2) == 1;

		if ((words[0] & TYPE_MASK) != TYPE_DATA || !ruby_value__is_object(words[1]) ||
		    !ruby_value__is_object(words[4]))
			continue;
		if (is_type(walk, is_typed ? words[2] : words[3] & ~(uint64_t)7))
			ret = on_data(ctx, body + i * WORD, words[4]);
	}
	return ret;
}

int ruby_heap__each(struct ruby_reader *reader, uint64_t vm, const char *type, ruby_data_fn on_data,
		    void *ctx, bool *ret_is_whole)
{
	struct walk *walk = calloc(1, sizeof(*walk));
	uint64_t body = 0;
	int ret = 0;

	*ret_is_whole = false;
	if (!walk)
		return -ENOMEM;
	walk->reader = reader;
	walk->type = type;
	find_list(walk, vm);
	for (uint32_t i = 0; !ret && i < walk->n_pages; i++) {
		body = body_at(walk, walk->list, i, body);
		if (!body) /* the list is being changed */
			break;
		ret = see_page(walk, body, on_data, ctx);
		*ret_is_whole = i + 1 == walk->n_pages && walk->n_pages < PAGES_MAX &&
				!walk->skipped && reader->reads_left;
	}
	u64map__done(&walk->types);
	free(walk);
	return ret;
}
