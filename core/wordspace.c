// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/wordspace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/shared.h"
#include "core/inner_maps.h"
#include "core/util.h"

#define MAX_WORDS (CHUNKS_MAX * CHUNK_WORDS)

struct wordspace {
	int chunks_fd;
	uint32_t used, max; /* words */
	uint32_t n_chunks;
	struct chunk *chunks[CHUNKS_MAX]; /* mapped */
};

void wordspace__free(struct wordspace *space)
{
	uint32_t i;

	if (!space)
		return;
	for (i = 0; i < space->n_chunks; i++)
		munmap(space->chunks[i], sizeof(struct chunk));
	free(space);
}

/* Has `n` chunks, and one to spare when it has to add some. */
static int grow(struct wordspace *space, uint32_t n)
{
	uint32_t places[CHUNKS_MAX] = {}, first = space->n_chunks, i;
	int fds[CHUNKS_MAX] = {}, err = 0;
	void *chunk;

	if (n > CHUNKS_MAX)
		return -ENOSPC;
	if (n <= first)
		return 0;
	n = min_of(n + 1, (uint32_t)CHUNKS_MAX);
	for (i = first; i < n; i++) {
		err = inner_map__create("chunk", sizeof(struct chunk), &chunk, &fds[i - first]);
		if (err)
			break;
		space->chunks[i] = chunk;
		places[i - first] = i;
	}
	n = i;
	if (!err)
		err = inner_maps__add(space->chunks_fd, places, fds, n - first);
	for (i = first; i < n; i++) {
		close(fds[i - first]);
		if (err)
			munmap(space->chunks[i], sizeof(struct chunk));
	}
	if (!err)
		space->n_chunks = n;
	return err;
}

struct wordspace *wordspace__new(int chunks_fd, size_t max_bytes)
{
	struct wordspace *space = calloc(1, sizeof(*space));

	if (!space)
		return NULL;
	space->chunks_fd = chunks_fd;
	space->max = MAX_WORDS;
	if (max_bytes)
		space->max = min_of(max_bytes / sizeof(uint32_t), (size_t)MAX_WORDS);
	grow(space, 1); /* it waits: now, not when a program has started */
	return space;
}

int wordspace__add(struct wordspace *space, const struct unwind_table *table, uint32_t *ret_base)
{
	uint32_t base = (space->used + UNWIND_RULE_WORDS - 1) & ~(UNWIND_RULE_WORDS - 1U);
	uint32_t at = base, done = 0, n;
	int err;

	if (base > space->max || table->n_words > space->max - base)
		return -ENOSPC;
	err = grow(space, (base + table->n_words + CHUNK_WORDS - 1) >> CHUNK_WORDS_BITS);
	if (err)
		return err;
	while (done < table->n_words) {
		n = min_of(table->n_words - done, CHUNK_WORDS - at % CHUNK_WORDS);
		memcpy(&space->chunks[at >> CHUNK_WORDS_BITS]->words[at % CHUNK_WORDS],
		       &table->words[done], n * sizeof(uint32_t));
		at += n;
		done += n;
	}
	space->used = at;
	*ret_base = base;
	return 0;
}

size_t wordspace__max_bytes(const struct wordspace *space)
{
	return (size_t)space->max * sizeof(uint32_t);
}

size_t wordspace__bytes(const struct wordspace *space)
{
	return space->n_chunks * sizeof(struct chunk);
}
