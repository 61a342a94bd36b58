/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ELF_GENERATED_H
#define BRAID_ELF_GENERATED_H

#include "core/elf/elf_file.h"

/* Section headers for a file that has none.
 *
 * The kernel and the dynamic linker read program headers only. So a file whose section headers were
 * removed runs as before. Its program headers still have the addresses of all parts that the kernel
 * and the dynamic linker need: the dynamic symbols, their strings and relocations (PT_DYNAMIC) and
 * the call frame information (PT_GNU_EH_FRAME). elf_generated__new() writes an ELF header, the
 * program headers and section headers for these parts into memory, under the names that linkers
 * give them. libelf reads that memory as the file's headers, so that readers of sections need no
 * special case.
 *
 * Section headers are all generated or all original: a file with one usable section of a well-known
 * name retains its own headers. */

struct elf_generated; /* defined in elf_generated.c */

/* Generates the headers of @file. Reads its @size, @account and contents. Returns 0, -ENOENT if the
 * file has no usable program headers, -ENOMEM, -EFBIG or -EINTR. */
int elf_generated__new(const struct elf_file *file, struct elf_generated **ret);
void elf_generated__free(struct elf_generated *generated); /* NULL is fine */

/* Returns a whole ELF file without contents, for elf_memory(); borrowed until
 * elf_generated__free(). */
char *elf_generated__headers(const struct elf_generated *generated, size_t *ret_size);

/* Returns the names of the sections, which are in no file. */
const Elf_Data *elf_generated__names(const struct elf_generated *generated);

#endif
