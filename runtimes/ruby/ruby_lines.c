// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/ruby/ruby_lines.h"

#include <string.h>

/* struct succ_index_table (iseq.c, 2.7 to 4.0). It has the ranks of the first 54 positions, 7
 * bits each, nine to a word. A block for every 512 positions follows: {u32 rank, u64 ranks of
 * the words from the second on, 9 bits each, u64 bits[8]}. */
#define IMMEDIATE	54
#define IMMEDIATE_BYTES 48
#define PER_WORD	9
#define BLOCK		512
#define BLOCK_BYTES	80

size_t ruby_lines__positions_size(uint32_t iseq_size)
{
	size_t blocks = iseq_size > IMMEDIATE ? (iseq_size - IMMEDIATE + BLOCK - 1) / BLOCK : 0;

	return IMMEDIATE_BYTES + blocks * BLOCK_BYTES;
}

static uint64_t word_at(const struct ruby_lines *lines, size_t at)
{
	uint64_t word = 0;

	if (at + sizeof(word) <= lines->positions_size)
		memcpy(&word, lines->positions + at, sizeof(word));
	return word;
}

/* Returns the number of set positions up to and including this one (succ_index_lookup). */
static uint32_t rank(const struct ruby_lines *lines, uint32_t position)
{
	uint32_t at, word, in_words;
	size_t block;

	if (position < IMMEDIATE)
		return word_at(lines, position / PER_WORD * 8) >> position % PER_WORD * 7 & 0x7f;
	at = position - IMMEDIATE;
	block = IMMEDIATE_BYTES + (size_t)(at / BLOCK) * BLOCK_BYTES;
	word = at % BLOCK / 64;
	in_words = word ? word_at(lines, block + 8) >> (word - 1) * 9 & 0x1ff : 0;
	return (uint32_t)word_at(lines, block) + in_words +
	       __builtin_popcountll(word_at(lines, block + 16 + 8 * word) << (63 - at % 64));
}

uint32_t ruby_lines__find(const struct ruby_lines *lines, uint32_t position)
{
	uint32_t nth = lines->n_entries == 1 ? 1 : rank(lines, position);
	int32_t line;

	if (!nth || nth > lines->n_entries || lines->entry_size < sizeof(line))
		return 0;
	memcpy(&line, lines->entries + (nth - 1) * lines->entry_size, sizeof(line));
	return line > 0 ? line : 0;
}
