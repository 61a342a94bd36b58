// SPDX-License-Identifier: GPL-2.0-or-later
/* The index of code by address and time, compared with a search of all entries. Includes shapes
 * that would be slow if the index were a plain sorted list. */
#include "core/target/jit_index.h"

#include <errno.h>
#include <string.h>

#include "core/base/util.h"
#include "tests/tap.h"

#define SPACE 64 /* number of addresses */

/* Applies the rule of the header word by word. Returns 0 for no entry. */
static uint32_t oracle(const struct jit_entry *entries, size_t n, uint64_t address, uint64_t time)
{
	const struct jit_entry *known = NULL, *later = NULL;

	for (size_t i = 0; i < n; i++) {
		const struct jit_entry *e = &entries[i];

		if (address < e->start || address - e->start >= e->size)
			continue;
		if (e->since_ns <= time && (!known || e->since_ns >= known->since_ns))
			known = e;
		if (e->since_ns > time && (!later || e->since_ns < later->since_ns))
			later = e;
	}
	return known ? known->text : later ? later->text : 0;
}

static uint32_t random_number(void)
{
	static uint32_t state = 1;

	state = state * 1664525 + 1013904223;
	return state >> 8;
}

static void check_random(bool times_ascend)
{
	struct jit_entry entries[40], found;
	int wrong = 0, hits = 0, holes = 0;

	for (int round = 0; round < 400; round++) {
		struct jit_index index = {};
		uint64_t time = 0;

		for (size_t n = 0; n < ARRAY_SIZE(entries); n++) {
			uint32_t text = random_number() % 8 ? n + 1 : 0;

			time = times_ascend ? time + random_number() % 3 : random_number() % 50;
			entries[n] = (struct jit_entry) { .start = random_number() % SPACE,
							  .since_ns = time,
							  .size = random_number() % 20,
							  .text = text };
			wrong += jit_index__add(&index, &entries[n]) != 0;
			/* between additions, too, as this creates runs */
			for (int i = 0; i < 12; i++) {
				uint64_t address = random_number() % (SPACE + 20);
				uint64_t at = random_number() % 60;
				uint32_t want = oracle(entries, n + 1, address, at);
				bool got = jit_index__find(&index, address, at, &found);

				wrong += got != !!want || (got && found.text != want);
				hits += got;
				holes += !got;
			}
		}
		jit_index__done(&index);
	}
	ok(hits > 10000 && holes > 1000, "%d hits, %d misses", hits, holes);
	is_int(wrong, 0, "overlapping ranges, %s: as a search through all of them",
	       times_ascend ? "one after the other" : "in no order");
}

static void check_edges(void)
{
	struct jit_index index = {};
	struct jit_entry found;

	ok(!jit_index__find(&index, 0, 0, &found), "an empty index");
	jit_index__add(&index, &(struct jit_entry) { .start = 100, .size = 10, .text = 1 });
	ok(!jit_index__find(&index, 99, 0, &found), "the byte before");
	ok(jit_index__find(&index, 100, 0, &found) && found.text == 1, "the first byte");
	ok(jit_index__find(&index, 109, 0, &found) && found.text == 1, "the last byte");
	ok(!jit_index__find(&index, 110, 0, &found), "the byte after");
	jit_index__add(&index,
		       &(struct jit_entry) { .start = 100, .since_ns = 5, .size = 10, .text = 0 });
	ok(jit_index__find(&index, 105, 4, &found) && found.text == 1, "before it was taken away");
	ok(!jit_index__find(&index, 105, 5, &found), "and after that");
	jit_index__done(&index);
	jit_index__done(&index);
	ok(!index.n && !index.entries, "done twice");
}

/* Entries that enclose all others must not make each search scan all of them. */
static void check_hostile(void)
{
	enum { N = 200000, SEARCHES = 20000 };
	struct jit_index index = {};
	struct jit_entry found;
	int wrong = 0;

	for (uint32_t i = 0; i < N; i++)
		jit_index__add(&index, &(struct jit_entry) { .start = 16 * (uint64_t)i,
							     .since_ns = i,
							     .size = i % 1000 ? 16 : 16 * N,
							     .text = i + 1 });
	for (uint32_t i = 0; i < SEARCHES; i++) {
		uint32_t n = random_number() % N;

		wrong += !jit_index__find(&index, 16 * (uint64_t)n + 15, UINT64_MAX, &found) ||
			 16 * (uint64_t)n + 15 - found.start >= found.size;
	}
	is_int(wrong, 0, "large ranges over small ones");
	jit_index__done(&index);
	for (uint32_t i = 0; i < N; i++)
		jit_index__add(&index,
			       &(struct jit_entry) {
				       .start = 16, .since_ns = i, .size = 16, .text = i + 1 });
	ok(jit_index__find(&index, 20, UINT64_MAX, &found) && found.text == N,
	   "one address used %d times: the last holds", N);
	jit_index__done(&index);
}

static void check_full(void)
{
	struct jit_index index = {};
	struct jit_entry entry = { .size = 1, .text = 1 }, found;
	int rc = 0;

	while (!rc) {
		entry.start = index.n;
		rc = jit_index__add(&index, &entry);
	}
	is_int(rc, -ENOSPC, "no more than CODE_ENTRIES_MAX");
	is_int(index.n, JIT_ENTRIES_MAX, "which are kept");
	ok(jit_index__find(&index, JIT_ENTRIES_MAX - 1, 0, &found), "and found");
	jit_index__done(&index);
}

int main(void)
{
	check_edges();
	check_random(true);
	check_random(false);
	check_hostile();
	check_full();
	return tap__done();
}
