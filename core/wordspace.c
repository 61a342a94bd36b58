// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/wordspace.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "bpf/shared.h"
#include "core/util.h"

struct wordspace {
	int chunks_fd;
	uint32_t used; /* words */
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

static int add_chunk(struct wordspace *space)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	uint32_t index = space->n_chunks;
	struct chunk *chunk = MAP_FAILED;
	int fd, err = 0;

	if (index >= CHUNKS_MAX)
		return -ENOSPC;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "chunk", sizeof(uint32_t), sizeof(*chunk), 1,
			    &opts);
	if (fd < 0)
		return -errno;
	chunk = mmap(NULL, sizeof(*chunk), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (chunk == MAP_FAILED) {
		err = -errno;
	} else if (bpf_map_update_elem(space->chunks_fd, &index, &fd, BPF_ANY)) {
		err = -errno;
		munmap(chunk, sizeof(*chunk));
	} else {
		space->chunks[space->n_chunks++] = chunk;
	}
	close(fd);
	return err;
}

struct wordspace *wordspace__new(int chunks_fd)
{
	struct wordspace *space = calloc(1, sizeof(*space));

	if (!space)
		return NULL;
	space->chunks_fd = chunks_fd;
	add_chunk(
		space); /* it waits for an RCU grace period: now, not when a program has started */
	return space;
}

int wordspace__add(struct wordspace *space, const struct unwind_table *table, uint32_t *ret_base)
{
	uint32_t base = (space->used + UNWIND_RULE_WORDS - 1) & ~(UNWIND_RULE_WORDS - 1U);
	uint32_t at = base, done = 0, n;
	int err;

	if (table->n_words > (uint64_t)CHUNKS_MAX * CHUNK_WORDS - base)
		return -ENOSPC;
	while (done < table->n_words) {
		if (at >> CHUNK_WORDS_BITS >= space->n_chunks) {
			err = add_chunk(space);
			if (err)
				return err;
		}
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

size_t wordspace__bytes(const struct wordspace *space)
{
	return space->n_chunks * sizeof(struct chunk);
}
