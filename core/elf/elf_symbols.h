/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ELF_SYMBOLS_H
#define BRAID_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/elf/elf_file.h"

/* Replaces elf_strptr(). In a string table without its final NUL, elf_strptr() searches backwards
 * for one at every call, which makes a hostile file quadratic. Here such a table is refused once.
 */

/* Returns the string table in section @index, or NULL if it is absent or malformed. */
Elf_Data *elf_strings__open(const struct elf_file *file, size_t index);

/* Returns the string at @offset, or NULL if @offset is outside the table. Borrowed until
 * elf_file__free(). */
const char *elf_strings__get(const Elf_Data *strings, size_t offset);

struct elf_symbols {
	Elf_Data *data;
	Elf_Data *strings;
	size_t n;
};

/* Opens a symbol table by section name. Returns false if it is absent or malformed. There is no
 * close function. */
bool elf_symbols__open(const struct elf_file *file, const char *section, struct elf_symbols *ret);

/* Reads symbol @i. Returns its name (borrowed until elf_file__free()), or NULL if it is malformed.
 */
const char *elf_symbols__get(const struct elf_symbols *symbols, size_t i, GElf_Sym *ret);

#endif
