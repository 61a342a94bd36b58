/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TABLE_ARENA_H
#define BRAID_TABLE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "core/unwind/unwind_table.h"

/* The words of all unwind tables, as the kernel half reads them: a growing sequence of chunks
 * (bpf/shared.h). One table serves all processes that map the image. */
struct table_arena;

/* @chunks_fd: the array of chunk maps; borrowed. @max_bytes: the limit; 0: the maximum of the
 * format. Returns NULL if out of memory. */
struct table_arena *table_arena__new(int chunks_fd, size_t max_bytes);
void table_arena__free(struct table_arena *arena); /* NULL is fine */

/* Copies a table into the arena; *@ret_base is its start. Returns 0, -ENOSPC if the arena is full,
 * -ENOMEM, or an error of creating a map. */
int table_arena__add(struct table_arena *arena, const struct unwind_table *table, uint64_t now_ns,
		     uint32_t *ret_base);

/* Releases the place of a table without references. It is reused after 1 s, as a running sample may
 * still read it. */
void table_arena__remove(struct table_arena *arena, uint32_t base, uint32_t n_words,
			 uint64_t now_ns);

/* Copies @n_words of the table at @base to @ret. */
void table_arena__read(const struct table_arena *arena, uint32_t base, uint32_t n_words,
		       uint32_t *ret);

/* Returns chunk @i, read-only; NULL: there are no more. */
const struct chunk *table_arena__chunk(const struct table_arena *arena, uint32_t i);

size_t table_arena__max_bytes(const struct table_arena *arena); /* capacity */

/* Returns the bytes of kernel memory in use. */
size_t table_arena__bytes(const struct table_arena *arena);

#endif
