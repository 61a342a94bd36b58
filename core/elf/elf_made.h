/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ELF_MADE_H
#define BRAID_ELF_MADE_H

#include "core/elf/elf_file.h"

/* Section headers for a file that has none.
 *
 * The kernel and the dynamic linker read program headers only. So a file whose section headers were
 * removed runs as before, and its program headers still lead to all that they need: the dynamic
 * symbols, their strings and relocations (PT_DYNAMIC) and the call frame information
 * (PT_GNU_EH_FRAME). elf_made__new() writes an ELF header, the program headers and section headers
 * for these parts into memory, under the names that linkers give them. libelf reads that memory as
 * the file's headers, so that no reader of sections needs a second way.
 *
 * The section headers are made as a whole or not at all: a file with a single usable one among the
 * well-known names keeps its own. */

struct elf_made; /* contents: elf_made.c */

/* Makes the headers of @file, of which `size`, `account` and the contents are read. Returns 0, or
 * -ENOENT if there is nothing to make them of; -ENOMEM, -EFBIG or -EINTR. */
int elf_made__new(const struct elf_file *file, struct elf_made **ret);
void elf_made__free(struct elf_made *made); /* NULL is fine */

/* A whole ELF file without contents, for elf_memory(); borrowed until elf_made__free(). */
char *elf_made__headers(const struct elf_made *made, size_t *ret_size);

/* The names of the sections, which no file holds. */
const Elf_Data *elf_made__names(const struct elf_made *made);

#endif
