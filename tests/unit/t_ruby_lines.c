// SPDX-License-Identifier: GPL-2.0-or-later
/* The decoder of CRuby's line tables, compared with an encoder, and on broken tables. */
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "runtimes/ruby/ruby_lines.h"
#include "tests/tap.h"

#define SIZE_MAX_WORDS 6000 /* maximum size of an iseq, in words */

/* State of a fixed sequence (linear congruential generator of Numerical Recipes). */
static uint32_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % n;
}

/* --- the encoder: struct succ_index_table and succ_index_table_create, iseq.c at 3.1.2 --- */

struct dict_block {
	unsigned int rank;
	uint64_t small_block_ranks;
	uint64_t bits[512 / 64];
};

/* Encodes @n ascending positions below @max_pos. *@ret_size is the number of bytes that Ruby
 * allocates. The result is owned by the caller. */
static uint8_t *encode(uint32_t max_pos, const uint32_t *positions, uint32_t n, size_t *ret_size)
{
	uint32_t imm_size = (max_pos < 54 ? max_pos + 8 : 54) / 9, r = 0;
	uint32_t n_blocks = max_pos < 54 ? 0 : (max_pos - 54 + 511) / 512;
	uint64_t *imm =
		calloc(1, imm_size * sizeof(uint64_t) + n_blocks * sizeof(struct dict_block));
	struct dict_block *blocks = (struct dict_block *)(imm + imm_size);

	*ret_size = imm_size * sizeof(uint64_t) + n_blocks * sizeof(struct dict_block);
	if (!imm)
		abort();
	for (uint32_t j = 0; j < imm_size; j++) {
		for (uint32_t i = 0; i < 9; i++) {
			if (r < n && positions[r] == j * 9 + i)
				r++;
			imm[j] |= (uint64_t)r << i * 7;
		}
	}
	for (uint32_t k = 0; k < n_blocks; k++) {
		uint64_t small_rank = 0;

		blocks[k].rank = r;
		for (uint32_t j = 0; j < 8; j++) {
			if (j)
				blocks[k].small_block_ranks |= small_rank << (j - 1) * 9;
			for (uint32_t i = 0; i < 64; i++) {
				if (r == n || positions[r] != k * 512 + j * 64 + i + 54)
					continue;
				blocks[k].bits[j] |= 1ULL << i;
				small_rank++;
				r++;
			}
		}
	}
	return (uint8_t *)imm;
}

/* --- comparison with the decoder --- */

struct table {
	uint32_t size, n; /* number of words of the iseq, and of its entries */
	uint32_t positions[SIZE_MAX_WORDS];
	int32_t lines[SIZE_MAX_WORDS];
};

/* Makes a table in which one instruction in about @sparse words has an entry; the first always has
 * one. */
static void random_table(struct table *table, uint32_t size, uint32_t sparse)
{
	table->size = size;
	table->n = 0;
	for (uint32_t at = 0; at < size; at++) {
		if (at && random_below(sparse))
			continue;
		table->positions[table->n] = at;
		table->lines[table->n++] = random_below(9) ? (int32_t)(1 + random_below(1 << 20))
							   : (int32_t)random_below(3) - 1;
	}
}

static size_t wrong_lines(const struct table *table, const struct ruby_lines *lines)
{
	uint32_t next = 0;
	int32_t want = 0;
	size_t wrong = 0;

	for (uint32_t at = 0; at < table->size; at++) {
		if (next < table->n && table->positions[next] == at)
			want = table->lines[next++];
		wrong += ruby_lines__find(lines, at) != (uint32_t)max_of(want, 0);
	}
	return wrong;
}

/* Decodes the table twice: from as many bytes as the vector can have at most, as braid does, and
 * from exactly the vector's bytes. Each buffer ends with its data, for ASan. */
static size_t check_table(const struct table *table, size_t entry_size)
{
	size_t most = ruby_lines__positions_size(table->size), size, wrong = 0;
	uint8_t *exact = encode(table->size, table->positions, table->n, &size), *padded;
	uint8_t *entries = malloc(table->n * entry_size);
	struct ruby_lines lines = { .entries = entries,
				    .n_entries = table->n,
				    .entry_size = entry_size };

	if (size > most)
		tap__diag("%u words: %zu bytes, more than %zu", table->size, size, most);
	padded = calloc(1, max_of(most, size));
	if (!entries || !padded)
		abort();
	memcpy(padded, exact, size);
	memset(entries, 0xee, table->n * entry_size);
	for (uint32_t i = 0; i < table->n; i++)
		memcpy(entries + i * entry_size, &table->lines[i], sizeof(table->lines[i]));
	lines.positions = padded;
	lines.positions_size = most;
	wrong += (size > most) + wrong_lines(table, &lines);
	lines.positions = exact;
	lines.positions_size = size;
	wrong += wrong_lines(table, &lines);
	free(exact);
	free(padded);
	free(entries);
	return wrong;
}

static void test_sizes(void)
{
	static const uint32_t sparse[] = { 1, 2, 5, 40, 1000 };
	static struct table table;
	size_t wrong = 0, tables = 0;

	for (uint32_t size = 1; size < 1200; size++) {
		random_table(&table, size, sparse[size % ARRAY_SIZE(sparse)]);
		wrong += check_table(&table, size & 1 ? 8 : 12);
		tables++;
	}
	is_int(wrong, 0, "iseqs of every size up to %zu words", tables);
	for (uint32_t round = wrong = 0; round < 300; round++) {
		random_table(&table, 1 + random_below(SIZE_MAX_WORDS),
			     sparse[round % ARRAY_SIZE(sparse)]);
		wrong += check_table(&table, 12);
	}
	is_int(wrong, 0, "300 larger ones");
	is_int(ruby_lines__positions_size(54), 48, "the last size without a block");
	is_int(ruby_lines__positions_size(55), 128, "the first with one");
	is_int(ruby_lines__positions_size(54 + 512), 128, "a full block");
	is_int(ruby_lines__positions_size(54 + 513), 208, "the next one");
}

static void test_entries(void)
{
	static const int32_t entries[] = { 7, 0, 0, -5, 0, 0, INT32_MAX, 0, 0 };
	uint64_t imm[6] = { 1 | 2 << 7 | 3 << 14 | 4 << 21 };
	struct ruby_lines lines = { .entries = (const uint8_t *)entries,
				    .n_entries = 1,
				    .entry_size = 12 };

	is_int(ruby_lines__find(&lines, 0), 7, "one entry: no vector");
	is_int(ruby_lines__find(&lines, UINT32_MAX), 7, "it is for all positions");
	lines.entry_size = 3;
	is_int(ruby_lines__find(&lines, 0), 0, "entries without room for a line");
	lines.entry_size = 12;
	lines.n_entries = 3;
	is_int(ruby_lines__find(&lines, 0), 0, "several entries, and no vector");
	lines.positions = (const uint8_t *)imm;
	lines.positions_size = sizeof(imm);
	is_int(ruby_lines__find(&lines, 0), 7, "the first entry");
	is_int(ruby_lines__find(&lines, 1), 0, "a negative line");
	is_int(ruby_lines__find(&lines, 2), INT32_MAX, "the largest");
	is_int(ruby_lines__find(&lines, 3), 0, "an entry that there is not");
	is_int(ruby_lines__find(&lines, 4), 0, "none");
	is_int(ruby_lines__find(&lines, 54), 0, "a position behind the vector");
	lines.n_entries = 0;
	is_int(ruby_lines__find(&lines, 0), 0, "no entries");
}

/* Decodes broken tables. Any line is right as long as no byte outside the table is read (ASan). */
static void test_broken(void)
{
	size_t wrong = 0;

	for (int round = 0; round < 20000; round++) {
		size_t size = random_below(300), n = 1 + random_below(40);
		uint8_t *positions = malloc(size ? size : 1);
		int32_t *entries = malloc(n * sizeof(*entries));
		struct ruby_lines lines = { .positions = positions,
					    .positions_size = size,
					    .entries = (const uint8_t *)entries,
					    .n_entries = n,
					    .entry_size = sizeof(*entries) };

		for (size_t i = 0; i < size; i++)
			positions[i] = random_below(3) ? random_below(256) : 0;
		for (size_t i = 0; i < n; i++)
			entries[i] = 1000 + i;
		for (int k = 0; k < 20; k++) {
			uint32_t position = k & 1 ? random_below(800) : random_below(1 << 24) << 8;
			uint32_t line = ruby_lines__find(&lines, position);

			wrong += line && (line < 1000 || line >= 1000 + n);
		}
		free(positions);
		free(entries);
	}
	is_int(wrong, 0, "20,000 broken tables");
}

int main(void)
{
	test_sizes();
	test_entries();
	test_broken();
	return tap__done();
}
