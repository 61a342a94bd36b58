// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel half finds the row of a table by a binary search, in one chunk or in two. The test
 * puts a table at each place around a chunk's end and looks up each address. A linear search is the
 * oracle. */
#include "core/base/util.h"
#include "tests/tap.h"

#include "tests/unit/tables.h"

#define PAGES 4
#define BASE  (CHUNK_WORDS - 100)

/* Starts of rows, and their rules. Page 1 has no row of its own, page 2 begins with a row. */
static const struct {
	uint32_t at, rule;
} rows[] = { { 3, 2 },	 { 4, 3 },   { 80, 4 },	 { 81, 0 },  { 200, 5 }, { 255, 6 },
	     { 512, 7 }, { 513, 8 }, { 600, 9 }, { 700, 2 }, { 767, 3 }, { 800, 4 } };

#define ROWS_AT (PAGES + 1)

static uint32_t words[ROWS_AT + ARRAY_SIZE(rows)];

static void make(void)
{
	uint32_t row = 0;

	for (uint32_t page = 0; page <= PAGES; page++) {
		while (row < ARRAY_SIZE(rows) && rows[row].at < page * UNWIND_PAGE_BYTES)
			row++;
		words[page] = row;
	}
	for (row = 0; row < ARRAY_SIZE(rows); row++)
		words[ROWS_AT + row] =
			UNWIND_ROW(rows[row].at & (UNWIND_PAGE_BYTES - 1), rows[row].rule);
}

static int rule_at(uint32_t at)
{
	int rule = 0;

	for (uint32_t i = 0; i < ARRAY_SIZE(rows) && rows[i].at <= at; i++)
		rule = (int)rows[i].rule;
	return rule;
}

static bool begins_at(uint32_t at)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].at == at)
			return true;
	return false;
}

/* Returns the number of addresses whose rule or whose next row is wrong. */
static uint32_t wrong_at(uint32_t base)
{
	static struct unwind_state u;
	uint32_t n = 0;

	for (uint32_t at = 0; at < PAGES * UNWIND_PAGE_BYTES; at++) {
		int found = rule__find(&u, base, base + ROWS_AT, at);

		/* At a page's end, the first row of any later page may count as the next. */
		if (found != rule_at(at) ||
		    (begins_at(at + 1) ? !u.row_begins
				       : u.row_begins && (at + 1) % UNWIND_PAGE_BYTES))
			n++;
	}
	return n;
}

int main(void)
{
	uint32_t n = 0;

	sampler__open();
	make();
	for (uint32_t base = BASE; base < BASE + 200; base++) {
		sampler__put_words(base, words, ARRAY_SIZE(words));
		n += wrong_at(base);
	}
	is_int(n, 0, "each address has its rule, wherever the chunk ends");
	n = (uint32_t)rule__find(&(struct unwind_state) {}, 40U << CHUNK_WORDS_BITS, 0, 0);
	is_int((int)n, -1, "a table in a chunk that is not there is an inconsistent one");
	sampler__close();
	return tap__done();
}
