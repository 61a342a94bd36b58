/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TABLE_ARENA_H
#define BRAID_TABLE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "core/unwind/unwind_table.h"

/* The words of all unwind tables, as the kernel half reads them: a growing row of chunks
 * (bpf/shared.h). One table serves all processes that map the image. */
struct table_arena;

/* `chunks_fd`: the array of chunk maps; borrowed. `max_bytes`: no more than that; 0: as many as can
 * be. NULL: out of memory. */
struct table_arena *table_arena__new(int chunks_fd, size_t max_bytes);
void table_arena__free(struct table_arena *arena); /* NULL is fine */

/* Copies the table in; `ret_base` is where it starts. -ENOSPC when the space is used up, -ENOMEM,
 * or what creating a map returns. */
int table_arena__add(struct table_arena *arena, const struct unwind_table *table, uint64_t now_ns,
		     uint32_t *ret_base);

/* Gives the place of a table back that nothing refers to any more. It is not used again for a
 * second, as a sample may be just being taken by it. */
void table_arena__remove(struct table_arena *arena, uint32_t base, uint32_t n_words,
			 uint64_t now_ns);

/* Copies @n_words of the table at @base to @ret. */
void table_arena__read(const struct table_arena *arena, uint32_t base, uint32_t n_words,
		       uint32_t *ret);

/* Chunk `i`, to be read; NULL: there are no more. */
const struct chunk *table_arena__chunk(const struct table_arena *arena, uint32_t i);

size_t table_arena__max_bytes(const struct table_arena *arena); /* there is room for */

/* Bytes of kernel memory. */
size_t table_arena__bytes(const struct table_arena *arena);

#endif
