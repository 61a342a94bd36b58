// SPDX-License-Identifier: GPL-2.0-or-later
/* Finds the mapping that contained an address at a given time. */
#include "core/target/mapping_times.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "tests/tap.h"

#define AT   0x10000
#define SIZE 0x4000

static struct process process;

static struct mapped *list_of(const struct mapped *from, size_t n)
{
	struct mapped *list = calloc(n, sizeof(*list));

	for (size_t i = 0; i < n; i++) {
		list[i] = from[i];
		list[i].whole_start = list[i].start;
		list[i].whole_end = list[i].end;
		list[i].path = strdup(from[i].path);
	}
	return list;
}

/* The mapping at the start of each test: one library, with inode 1. */
static const struct mapped first = {
	.start = AT, .end = AT + SIZE, .inode = 1, .bias = AT, .path = (char *)"/first"
};

static void end(void)
{
	process__clear_mapped(&process);
	quota__close(process.account);
	process = (struct process) {};
}

static void begin(void)
{
	end();
	process__set_mapped(&process, list_of(&first, 1), 1);
}

/* Processes a list as tracker_mappings.c does after reading it. */
static void read_list(const struct mapped *from, size_t n, uint64_t time_ns)
{
	struct mapped *list = list_of(from, n);

	if (mapping_times__replace(&process, list, n, time_ns) ||
	    process__set_mapped(&process, list, n))
		exit(1);
	mapping_times__on_published(&process, time_ns + 1);
}

static const char *path_at(uint64_t address, uint64_t time_ns)
{
	const struct mapped *mapped = mapping_times__find(&process, address, time_ns);

	return mapped ? mapped->path : "nothing";
}

static struct mapping_event event(uint64_t time_ns, uint64_t start, uint64_t size, uint64_t inode)
{
	return (struct mapping_event) {
		.time_ns = time_ns, .start = start, .end = start + size, .inode = inode
	};
}

static void cover(struct mapping_event by)
{
	if (mapping_times__cover(&process, &by))
		exit(1);
}

static bool is_covered(struct mapping_event by)
{
	return mapping_times__is_covered(&process, &by);
}

static void test_known(void)
{
	begin();
	is_str(path_at(AT, 0), "/first", "what was there from the beginning");
	is_int(mapping_times__span(&process, 12345), 0, "nothing has ended");
	ok(!mapping_times__has_unsure(&process, 12345), "nothing is unsure");
	ok(!is_covered(event(1000, AT, SIZE, 1)), "the same file again is the same code");
	ok(!is_covered(event(1000, AT + SIZE, SIZE, 2)), "its neighbour above");
	ok(!is_covered(event(1000, AT - SIZE, SIZE, 2)), "its neighbour below");
	ok(is_covered(event(1000, AT + SIZE - 1, 1, 2)), "another file over its last byte");
	ok(is_covered(event(1000, AT, 1, 0)), "memory without a file");
}

/* dlclose() and dlopen(): one library replaces another at the same place. */
static void test_replaced(void)
{
	struct mapped second = first, third = first;

	second.inode = 2;
	second.path = (char *)"/second";
	third.inode = 3;
	third.path = (char *)"/third";
	begin();
	cover(event(1000, AT, SIZE, 2));
	is_str(path_at(AT, 999), "/first", "the old library until its end");
	is_str(path_at(AT, 1000), "nothing", "then none that is known");
	ok(process.is_stale, "the mappings are to be read again");
	ok(!mapping_times__is_unsure(&process, AT, 999) &&
		   mapping_times__is_unsure(&process, AT, 1000) &&
		   mapping_times__is_unsure(&process, AT + SIZE - 1, UINT64_MAX - 1) &&
		   !mapping_times__is_unsure(&process, AT + SIZE, 1000),
	   "the published table is of the old library, until the list is published again");
	read_list(&second, 1, 2000);
	is_str(path_at(AT, 999), "/first", "read: the old one until its end,");
	is_str(path_at(AT, 1000), "/second", "the new one from there on, not from the reading on");
	ok(mapping_times__is_unsure(&process, AT, 2000) &&
		   !mapping_times__is_unsure(&process, AT, 2002) &&
		   !mapping_times__has_unsure(&process, 2002),
	   "and its table is in use from the publication on");
	cover(event(3000, AT, SIZE, 3));
	read_list(&third, 1, 3500);
	cover(event(4000, AT, SIZE, 1));
	read_list(&first, 1, 4500);
	is_str(path_at(AT, 999), "/first", "three libraries later: the first one,");
	is_str(path_at(AT, 2999), "/second", "the second,");
	is_str(path_at(AT, 3999), "/third", "the third,");
	is_str(path_at(AT, 4000), "/first", "and the first again");
	is_int(mapping_times__span(&process, 999), 0, "a span before all ends");
	is_int(mapping_times__span(&process, 1000), 1000, "between the first two");
	is_int(mapping_times__span(&process, 3999), 3000, "between the last two");
	is_int(mapping_times__span(&process, 9999), 4000, "behind the last");
}

/* A list is read before the event of a mapping in it arrives. */
static void test_late_event(void)
{
	struct mapped second = first;
	struct mapping_event late = event(1000, AT, SIZE, 2);

	second.inode = 2;
	second.path = (char *)"/second";
	begin();
	read_list(&second, 1, 2000);
	is_str(path_at(AT, 1500), "nothing", "without an event nothing tells the time");
	ok(mapping_times__is_unsure(&process, AT, 1) &&
		   mapping_times__is_unsure(&process, AT, 2000) &&
		   !mapping_times__is_unsure(&process, AT, 2002),
	   "... and either library may have been there before");
	ok(!is_covered(late), "the event is not about what came later");
	mapping_times__correct(&process, &late);
	is_str(path_at(AT, 999), "/first", "with the event it is that time:");
	is_str(path_at(AT, 1000), "/second", "that of the event");
	ok(mapping_times__is_unsure(&process, AT, 1500), "and the table was of the old file there");
}

static void test_parts(void)
{
	static const struct {
		uint64_t start, size;
		bool has_first, has_last, has_middle;
	} cases[] = { { AT, 0x1000, false, true, true },
		      { AT + SIZE - 0x1000, 0x2000, true, false, true },
		      { AT + 0x1000, 0x2000, true, true, false },
		      { AT - 0x1000, SIZE + 0x2000, false, false, false } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin();
		cover(event(1000, cases[i].start, cases[i].size, 2));
		ok(!!process__find(&process, AT) == cases[i].has_first &&
			   !!process__find(&process, AT + SIZE - 1) == cases[i].has_last &&
			   !!process__find(&process, AT + SIZE / 2) == cases[i].has_middle,
		   "case %zu: a part is covered", i);
		is_str(path_at(AT + SIZE / 2, 999), "/first", "... before it was");
	}
}

/* A compiler's memory replaces an unloaded library. Only the list that is read then shows that the
 * memory is not a copy of the library's code. */
static void test_memory(void)
{
	struct mapped memory = { .start = AT, .end = AT + SIZE, .bias = AT, .path = (char *)"" };
	struct mapping_event by = event(1000, AT, SIZE, 0);

	begin();
	mapping_times__note(&process, &by);
	ok(mapping_times__has_notes(&process), "noted");
	read_list(&memory, 1, 2000);
	is_str(path_at(AT, 999), "/first", "the library until the event");
	is_str(path_at(AT, 1000), "", "then memory");
	ok(!mapping_times__has_notes(&process), "the note is used up");
	ok(!is_covered(event(3000, AT, SIZE, 0)), "memory over memory is the compiler's own");
	memory.end += SIZE;
	read_list(&memory, 1, 4000);
	is_str(path_at(AT, 3999), "", "memory that grows is as old as it was");
	is_int(process.mapped[0].born_ns, 1000, "... since then");
}

/* munmap() without other changes. */
static void test_unmapped(void)
{
	begin();
	read_list(NULL, 0, 2000);
	is_str(path_at(AT, 1999), "/first", "unmapped: known for samples of before");
	is_str(path_at(AT, 2000), "nothing", "and for no other");
	ok(!mapping_times__has_unsure(&process, 1999), "nothing runs where nothing is mapped");
}

/* The event of the second library was lost, or mremap() moved it there. */
static void test_lost(void)
{
	static struct image image;
	struct mapped second = first, before = first;

	second.inode = 2;
	second.path = (char *)"/second";
	before.image = &image;
	begin();
	read_list(NULL, 0, 500);
	read_list(&before, 1, 1000);
	read_list(&second, 1, 2000);
	is_str(path_at(AT, 999), "/first", "the first one until a list with it was read");
	is_str(path_at(AT, 1000), "nothing", "lost: whichever was there since the first list");
	is_str(path_at(AT, 1999), "nothing", "until the second list was read");
	is_str(path_at(AT, 2000), "/second", "from then on the second one");
	ok(mapping_times__is_unsure(&process, AT, 1000), "stacks are cut there");
	mapping_times__use_images(&process, 777);
	ok(image.used_ns == 777, "its image is in use as one that has ended");
	begin();
	process__set_mapped(&process, list_of(&before, 1), 1);
	cover(event(1000, AT, SIZE, 2));
	image.used_ns = 0;
	for (uint64_t i = 0; i < ENDED_MAPPINGS_MAX; i++) {
		struct mapped other = first;

		other.start += 0x100000;
		other.end += 0x100000;
		other.inode = 100 + i;
		process__set_mapped(&process, list_of(&other, 1), 1);
		cover(event(2000 + i, other.start, SIZE, 2));
	}
	mapping_times__use_images(&process, 888);
	ok(!image.used_ns, "of a range that gave way to others the image may be released");
	begin();
	read_list(NULL, 0, 500);
	read_list(&before, 1, 1000);
	cover(event(1500, AT, SIZE, 2));
	read_list(&second, 1, 2000);
	is_str(path_at(AT, 1499), "/first", "not lost: the first one until the event,");
	is_str(path_at(AT, 1500), "/second", "and the second one from there on");
}

/* A program copies its code to a memfd and maps that over the code. */
static void test_moved(void)
{
	static struct image image, another;
	struct mapped before = first, after = first;
	struct mapping_event by = event(1000, AT + 0x1000, 0x1000, 2);

	before.image = after.image = &image;
	after.inode = 2;
	begin();
	process__set_mapped(&process, list_of(&before, 1), 1);
	cover(by);
	ok(mapping_times__is_unsure(&process, AT + 0x1000, 1000),
	   "unsure what has taken its place");
	read_list(&after, 1, 2000);
	ok(!mapping_times__is_unsure(&process, AT + 0x1000, 1000),
	   "the same code: the table in use was right all the time");
	begin();
	process__set_mapped(&process, list_of(&before, 1), 1);
	cover(by);
	after.image = &another;
	read_list(&after, 1, 2000);
	ok(mapping_times__is_unsure(&process, AT + 0x1000, 1000), "another image: it was not");
	begin();
	process__set_mapped(&process, list_of(&before, 1), 1);
	cover(by);
	after = before;
	after.bias += 0x1000;
	read_list(&after, 1, 2000);
	ok(mapping_times__is_unsure(&process, AT + 0x1000, 1000),
	   "other code of the image: neither");
}

static int remember(uint64_t time_ns, uint64_t start, uint64_t inode, uint64_t offset)
{
	struct mapping_event one = event(time_ns, start, SIZE, inode);

	one.offset = offset;
	return mapping_times__remember(&process, &one);
}

/* Libraries come and go between two readings. All data on them is from their events. */
static void test_events(void)
{
	struct mapped second = first, third = first;

	second.inode = 2;
	second.path = (char *)"/second";
	third.inode = 3;
	third.path = (char *)"/third";
	begin();
	read_list(&second, 1, 100);
	read_list(&third, 1, 200);
	read_list(&first, 1, 300);
	remember(4000, AT, 1, 0);
	remember(2000, AT, 2, 0);
	remember(3000, AT, 3, 0);
	is_str(path_at(AT, 2000), "/second", "the last event before a sample tells the file");
	is_str(path_at(AT, 3999), "/third", "... of each time");
	is_str(path_at(AT, 4000), "/first", "... up to now");
	is_str(path_at(AT + SIZE, 4000), "nothing", "... and at its addresses only");
	is_int(mapping_times__span(&process, 2999), 2000, "a span begins with an event");
	is_int(mapping_times__span(&process, 9999), 4000, "... and ends with none");
	remember(5000, AT, 7, 0);
	is_str(path_at(AT, 5000), "nothing",
	       "nothing is known of a file: the lists do not stand in");
	remember(6000, AT, 1, 0x1000);
	is_str(path_at(AT, 6000), "nothing", "nor for another part of a file");
	remember(7000, AT, 1, 0);
	remember(8000, AT, 0, 0);
	is_str(path_at(AT, 7999), "/first", "before memory without a file was mapped there");
	remember(8500, AT, 1, 0);
	read_list(&second, 1, 9000);
	is_str(path_at(AT, 8500), "/first", "an event tells the file at its time");
	is_str(path_at(AT, 8501), "nothing", "then nothing is proven until a list was read");
	is_str(path_at(AT, 9000), "/second", "... that has other memory there, moved by mremap");
	mapping_times__on_lost(&process);
	is_str(path_at(AT, 5000), "nothing", "after a loss nothing is proven between two lists");
}

/* Linux 6.8 and later report another device and inode for a file of overlayfs. */
static void test_devices(void)
{
	struct mapped layered = first;
	struct mapping_event by = event(1000, AT, SIZE, 77);

	layered.dev = 10;
	by.dev = 11;
	by.path = mapping_times__path_id("/first");
	begin();
	process__set_mapped(&process, list_of(&layered, 1), 1);
	ok(!is_covered(by), "another device and inode, the same path: the same file");
	mapping_times__remember(&process, &by);
	is_str(path_at(AT, 1000), "/first", "... which the event names");
	by.path = mapping_times__path_id("/second");
	ok(is_covered(by), "another path: another file");
	by.dev = 10;
	by.path = mapping_times__path_id("/first");
	ok(is_covered(by), "the same device, another inode: a new file of that name");
}

static void test_many_events(void)
{
	uint64_t n = RETAINED_EVENTS_MAX + 1;

	begin();
	for (uint64_t i = 1; i <= n; i++)
		remember(1000 * i, AT, i % 2 ? 1 : 2, 0);
	is_str(path_at(AT, 1000 * n), "/first", "many events: the last one");
	is_str(path_at(AT, 1000), "nothing", "what was there long ago is not known");
	is_int(mapping_times__span(&process, 1000), 1000, "... and no result holds for another");
}

static void test_limit(void)
{
	struct mapped next = first;
	uint64_t n = ENDED_MAPPINGS_MAX + 10, i;

	begin();
	for (i = 1; i <= n; i++) {
		next.inode = 1 + i;
		cover(event(1000 * i, AT, SIZE, 1 + i));
		read_list(&next, 1, 1000 * i + 1);
	}
	is_str(path_at(AT, 1000 * n - 1), "/first", "the last ones are kept");
	is_str(path_at(AT, 1), "nothing", "of the first ones nothing is known any more");
	is_int(mapping_times__span(&process, 5), 5, "... and no result holds for another sample");
}

int main(void)
{
	test_known();
	test_replaced();
	test_late_event();
	test_parts();
	test_memory();
	test_unmapped();
	test_lost();
	test_moved();
	test_events();
	test_devices();
	test_many_events();
	test_limit();
	end();
	return tap__done();
}
