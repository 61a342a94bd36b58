/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_WORDSPACE_H
#define BRAID_WORDSPACE_H

#include <stddef.h>
#include <stdint.h>

#include "core/unwind_table.h"

/* The words of all unwind tables, as the kernel half reads them: a growing row of chunks
 * (bpf/shared.h). Tables are only ever added; one serves all processes that map the image. */
struct wordspace;

/* `chunks_fd`: the array of chunk maps; borrowed. `max_bytes`: no more than that; 0: as many as can
 * be. NULL: out of memory. */
struct wordspace *wordspace__new(int chunks_fd, size_t max_bytes);
void wordspace__free(struct wordspace *space); /* NULL is fine */

/* Copies the table in; `ret_base` is where it starts. -ENOSPC when the space is used up, -ENOMEM,
 * or what creating a map returns. */
int wordspace__add(struct wordspace *space, const struct unwind_table *table, uint32_t *ret_base);

size_t wordspace__max_bytes(const struct wordspace *space); /* there is room for */

/* Bytes of kernel memory. */
size_t wordspace__bytes(const struct wordspace *space);

#endif
