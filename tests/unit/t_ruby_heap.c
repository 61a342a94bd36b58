// SPDX-License-Identifier: GPL-2.0-or-later
/* Objects of a made-up heap, in the test's own memory. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtimes/ruby/ruby_heap.h"
#include "tests/tap.h"

#define LARGE 65536
#define SMALL 16384
#define PAGES 3

static struct {
	uint64_t *type_name;
} fiber_type, other_type;

static char *memory, *pages[PAGES];
static uint64_t descriptions[PAGES][32], list[PAGES + 2], space[512], vm[256];
static struct ruby_reader reader;
static uint64_t seen[16];
static size_t n_seen;

static int on_data(void *ctx, uint64_t object, uint64_t data)
{
	(void)ctx, (void)object;
	if (n_seen < 16)
		seen[n_seen++] = data;
	return 0;
}

static void put_object(int page, size_t at, const void *type, uint64_t data)
{
	const uint64_t words[] = { 0x0c, 0x1000, (uint64_t)type, 1, data };

	memcpy(pages[page] + at, words, sizeof(words));
}

static bool walk(void)
{
	bool whole = false;

	n_seen = 0;
	reader.reads_left = 100000;
	is_int(ruby_heap__each(&reader, (uint64_t)vm, "fiber", on_data, NULL, &whole), 0, "walked");
	return whole;
}

static void build(size_t page)
{
	fiber_type.type_name = (uint64_t *)"fiber";
	other_type.type_name = (uint64_t *)"fibers";
	memset(memory, 0, PAGES * LARGE);
	memset(list, 0, sizeof(list));
	memset(space, 0, sizeof(space));
	for (int i = 0; i < PAGES; i++) {
		pages[i] = memory + i * page;
		*(uint64_t *)pages[i] = (uint64_t)descriptions[i];
		descriptions[i][5] = (uint64_t)pages[i] + 40;
		list[i] = (uint64_t)descriptions[i];
	}
	reader = (struct ruby_reader) { .pid = getpid(), .rec.offsets.vm_objspace = 64 };
	vm[8] = (uint64_t)space;
	space[3] = (uint64_t)&list[2]; /* a list that does not contain all objects */
	space[100] = (uint64_t)list;
}

static void test_heap(size_t page)
{
	build(page);
	put_object(0, 40, &fiber_type, 0x5008);
	put_object(1, 400, &other_type, 0x5010);
	put_object(2, page - 40, &fiber_type, 0x5018);
	ok(walk(), "the whole heap");
	is_int(n_seen, 2, "objects of that very type");
	ok(seen[0] == 0x5008 && seen[1] == 0x5018, "the first and the last slot");

	list[PAGES] = list[0];
	ok(walk() && n_seen == 2, "what was in the list before is not looked at again");

	put_object(1, 800, (void *)0x7, 0x5020);
	put_object(1, 1200, (void *)0x1000, 0x5020);
	ok(walk() && n_seen == 2, "types that are none");

	*(uint64_t *)pages[1] = 0;
	walk();
	is_int(n_seen, 1, "a page that does not know its description ends the list");

	memset(space, 0xff, sizeof(space));
	ok(!walk() && !n_seen, "no list: not the whole heap");
	vm[8] = 8;
	ok(!walk() && !n_seen, "no memory where the heap should be");
	reader.rec.offsets.vm_objspace = 64;
	vm[8] = (uint64_t)space;
	for (size_t i = 0; i < 512; i++) /* each word points to the list that contains it */
		space[i] = (uint64_t)space;
	ok(!walk() && !n_seen, "circles");
}

int main(void)
{
	memory = aligned_alloc(LARGE, PAGES * LARGE);
	if (!memory)
		return 1;
	test_heap(LARGE);
	test_heap(SMALL);
	free(memory);
	return tap__done();
}
