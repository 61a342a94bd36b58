// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/table_arena.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/shared.h"
#include "core/base/util.h"
#include "core/kernel/inner_maps.h"

#define MAX_WORDS (CHUNKS_MAX * CHUNK_WORDS)

struct table_arena {
	int chunks_fd;
	uint32_t used, max; /* words */
	uint32_t n_chunks;
	struct chunk *chunks[CHUNKS_MAX]; /* mapped */
};

void table_arena__free(struct table_arena *arena)
{
	uint32_t i;

	if (!arena)
		return;
	for (i = 0; i < arena->n_chunks; i++)
		munmap(arena->chunks[i], sizeof(struct chunk));
	free(arena);
}

/* Has `n` chunks, and one to spare when it has to add some. */
static int grow(struct table_arena *arena, uint32_t n)
{
	uint32_t places[CHUNKS_MAX] = {}, first = arena->n_chunks, i;
	struct inner_map maps[CHUNKS_MAX] = {};
	int ret = 0;

	if (n > CHUNKS_MAX)
		return -ENOSPC;
	if (n <= first)
		return 0;
	n = min_of(n + 1, (uint32_t)CHUNKS_MAX);
	for (i = first; i < n; i++) {
		ret = inner_map__create(arena->chunks_fd, "chunk", sizeof(struct chunk),
					&maps[i - first]);
		if (ret)
			break;
		arena->chunks[i] = maps[i - first].memory;
		places[i - first] = i;
	}
	n = i;
	if (!ret)
		ret = inner_maps__add(arena->chunks_fd, places, maps, n - first);
	for (i = first; i < n; i++) {
		close_fd(&maps[i - first].fd);
		if (ret)
			munmap(arena->chunks[i], sizeof(struct chunk));
	}
	if (!ret)
		arena->n_chunks = n;
	return ret;
}

struct table_arena *table_arena__new(int chunks_fd, size_t max_bytes)
{
	struct table_arena *arena = calloc(1, sizeof(*arena));

	if (!arena)
		return NULL;
	arena->chunks_fd = chunks_fd;
	arena->max = MAX_WORDS;
	if (max_bytes)
		arena->max = min_of(max_bytes / sizeof(uint32_t), (size_t)MAX_WORDS);
	grow(arena, 1); /* it waits: now, not when a program has started */
	return arena;
}

int table_arena__add(struct table_arena *arena, const struct unwind_table *table,
		     uint32_t *ret_base)
{
	uint32_t base = (arena->used + UNWIND_RULE_WORDS - 1) & ~(UNWIND_RULE_WORDS - 1U);
	uint32_t at = base, done = 0, n;
	int ret;

	if (base > arena->max || table->n_words > arena->max - base)
		return -ENOSPC;
	ret = grow(arena, (base + table->n_words + CHUNK_WORDS - 1) >> CHUNK_WORDS_BITS);
	if (ret)
		return ret;
	while (done < table->n_words) {
		n = min_of(table->n_words - done, CHUNK_WORDS - at % CHUNK_WORDS);
		assert(at >> CHUNK_WORDS_BITS < arena->n_chunks);
		memcpy(&arena->chunks[at >> CHUNK_WORDS_BITS]->words[at % CHUNK_WORDS],
		       &table->words[done], n * sizeof(uint32_t));
		at += n;
		done += n;
	}
	arena->used = at;
	*ret_base = base;
	return 0;
}

const struct chunk *table_arena__chunk(const struct table_arena *arena, uint32_t i)
{
	return i < arena->n_chunks ? arena->chunks[i] : NULL;
}

size_t table_arena__max_bytes(const struct table_arena *arena)
{
	return (size_t)arena->max * sizeof(uint32_t);
}

size_t table_arena__bytes(const struct table_arena *arena)
{
	return arena->n_chunks * sizeof(struct chunk);
}
