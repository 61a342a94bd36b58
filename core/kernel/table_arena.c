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

#define REST_NS NSEC_PER_SEC /* time until a free place is reused */

struct place {
	uint32_t at, n; /* words */
	uint64_t free_ns;
};

struct table_arena {
	int chunks_fd;
	struct place *places; /* free ones below `used`, sorted by `at`, not adjacent */
	size_t n_places, cap_places;
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
	free(arena->places);
	free(arena);
}

/* Ensures that there are @n chunks. If it must add some, it adds one in reserve. */
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
	grow(arena, 1); /* grow() waits, so the first call is made before a program starts */
	return arena;
}

static uint32_t align(uint32_t words)
{
	return (words + UNWIND_RULE_WORDS - 1) & ~(UNWIND_RULE_WORDS - 1U);
}

static void drop_place(struct table_arena *arena, struct place *place)
{
	arena->n_places--;
	memmove(place, place + 1, (arena->places + arena->n_places - place) * sizeof(*place));
}

/* Takes the first free place that is large enough. */
static bool take_place(struct table_arena *arena, uint32_t n, uint64_t now, uint32_t *ret)
{
	for (size_t i = 0; i < arena->n_places; i++) {
		struct place *place = &arena->places[i];

		if (place->n < n || now < place->free_ns + REST_NS)
			continue;
		*ret = place->at;
		place->at += n;
		place->n -= n;
		if (!place->n)
			drop_place(arena, place);
		return true;
	}
	return false;
}

void table_arena__remove(struct table_arena *arena, uint32_t base, uint32_t n_words,
			 uint64_t now_ns)
{
	struct place new = { base, align(n_words), now_ns }, *place;
	size_t i = 0;

	if (array__reserve(&arena->places, &arena->cap_places, arena->n_places + 1,
			   sizeof(*arena->places)))
		return; /* the place stays unused */
	while (i < arena->n_places && arena->places[i].at < base)
		i++;
	place = &arena->places[i];
	if (i < arena->n_places && new.at + new.n == place->at) {
		new.n += place->n;
		drop_place(arena, place);
	}
	if (i && place[-1].at + place[-1].n == new.at) {
		place[-1].n += new.n;
		place[-1].free_ns = new.free_ns;
		return;
	}
	memmove(place + 1, place, (arena->n_places - i) * sizeof(*place));
	*place = new;
	arena->n_places++;
}

/* Appends a place at the end. */
static int append_place(struct table_arena *arena, uint32_t n, uint32_t *ret)
{
	int code;

	if (n > arena->max - min_of(arena->used, arena->max))
		return -ENOSPC;
	code = grow(arena, (arena->used + n + CHUNK_WORDS - 1) >> CHUNK_WORDS_BITS);
	if (code)
		return code;
	*ret = arena->used;
	arena->used += n;
	return 0;
}

int table_arena__add(struct table_arena *arena, const struct unwind_table *table, uint64_t now_ns,
		     uint32_t *ret_base)
{
	uint32_t base = 0, at, done = 0, n;
	int ret = 0;

	if (!take_place(arena, align(table->n_words), now_ns, &base))
		ret = append_place(arena, align(table->n_words), &base);
	if (ret)
		return ret;
	at = base;
	while (done < table->n_words) {
		n = min_of(table->n_words - done, CHUNK_WORDS - at % CHUNK_WORDS);
		assert(at >> CHUNK_WORDS_BITS < arena->n_chunks);
		memcpy(&arena->chunks[at >> CHUNK_WORDS_BITS]->words[at % CHUNK_WORDS],
		       &table->words[done], n * sizeof(uint32_t));
		at += n;
		done += n;
	}
	*ret_base = base;
	return 0;
}

void table_arena__read(const struct table_arena *arena, uint32_t base, uint32_t n_words,
		       uint32_t *ret)
{
	for (uint32_t done = 0, n; done < n_words; done += n) {
		uint32_t at = base + done;

		n = min_of(n_words - done, CHUNK_WORDS - at % CHUNK_WORDS);
		memcpy(ret + done, &arena->chunks[at >> CHUNK_WORDS_BITS]->words[at % CHUNK_WORDS],
		       n * sizeof(*ret));
	}
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
