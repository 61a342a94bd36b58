// SPDX-License-Identifier: GPL-2.0-or-later
/* Places of unwind tables, in the kernel half built for the test process. */
#include "core/kernel/table_arena.h"

#include <stdlib.h>

#include "core/base/util.h"
#include "core/kernel/kernel_half.h"
#include "tests/tap.h"

#define SECOND NSEC_PER_SEC
#define WORDS  1000

static struct table_arena *arena;

/* Adds a table of @n words with the value @value. Returns its place. */
static uint32_t add(uint32_t n, uint32_t value, uint64_t now_ns)
{
	struct unwind_table table = { .words = calloc(n, sizeof(uint32_t)), .n_words = n };
	uint32_t base = UINT32_MAX;

	for (uint32_t i = 0; i < n; i++)
		table.words[i] = value;
	if (table_arena__add(arena, &table, now_ns, &base))
		base = UINT32_MAX;
	free(table.words);
	return base;
}

static bool holds(uint32_t base, uint32_t n, uint32_t value)
{
	for (uint32_t at = base; at < base + n; at++) {
		const struct chunk *chunk = table_arena__chunk(arena, at >> CHUNK_WORDS_BITS);

		if (!chunk || chunk->words[at & (CHUNK_WORDS - 1)] != value)
			return false;
	}
	return true;
}

static void test_places(void)
{
	uint32_t at[4];

	for (uint32_t i = 0; i < 4; i++)
		at[i] = add(WORDS, i + 1, 0);
	ok(at[0] + WORDS <= at[1] && at[1] + WORDS <= at[2] && at[2] + WORDS <= at[3],
	   "one behind the other");
	table_arena__remove(arena, at[1], WORDS, 10 * SECOND);
	ok(add(WORDS, 9, 11 * SECOND - 1) > at[3], "a free place rests for a second");
	is_int(add(WORDS / 2, 5, 11 * SECOND), at[1], "then it is used again");
	is_int(add(WORDS / 2, 6, 11 * SECOND), at[1] + WORDS / 2, "also the rest of it");
	ok(holds(at[0], WORDS, 1) && holds(at[1], WORDS / 2, 5) &&
		   holds(at[1] + WORDS / 2, WORDS / 2, 6) && holds(at[2], WORDS, 3),
	   "its neighbours are as they were");
	table_arena__remove(arena, at[2], WORDS, 20 * SECOND);
	table_arena__remove(arena, at[0], WORDS, 20 * SECOND);
	table_arena__remove(arena, at[1], WORDS / 2, 20 * SECOND);
	table_arena__remove(arena, at[1] + WORDS / 2, WORDS / 2, 20 * SECOND);
	is_int(add(3 * WORDS, 7, 30 * SECOND), at[0], "neighbours that are free are one place");
	ok(holds(at[0], 3 * WORDS, 7) && holds(at[3], WORDS, 4), "and no more than that");
	is_int(add(7, 8, 30 * SECOND) % UNWIND_RULE_WORDS, 0, "where rules can be");
	is_int(add(8, 8, 30 * SECOND) % UNWIND_RULE_WORDS, 0, "whatever came before");
}

/* Adds and removes tables. The memory depends only on the present ones. */
static void test_flat(void)
{
	size_t before = table_arena__bytes(arena);
	bool same = true;

	for (uint64_t i = 0; i < 2000; i++) {
		uint32_t base = add(CHUNK_WORDS / 4, i, (40 + 2 * i) * SECOND);

		same = same && holds(base, CHUNK_WORDS / 4, i);
		table_arena__remove(arena, base, CHUNK_WORDS / 4, (40 + 2 * i) * SECOND);
	}
	ok(same, "2,000 tables, one after the other");
	ok(table_arena__bytes(arena) <= before + 2 * sizeof(struct chunk), "in the room of one");
}

int main(void)
{
	struct kernel_half *half;

	if (kernel_half__on_host(&half))
		return 1;
	arena = table_arena__new(kernel_half__map_fd(half, "chunks"), 0);
	test_places();
	test_flat();
	table_arena__free(arena);
	kernel_half__free(half);
	return tap__done();
}
