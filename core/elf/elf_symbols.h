/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ELF_SYMBOLS_H
#define BRAID_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/elf/elf_file.h"

/* Why not elf_strptr: in a string table without its final NUL it searches backwards for one at
 * every call, which makes a hostile file quadratic. Here such a table is refused once. */

/* String table in section number `index`; NULL if there is none or it is malformed. */
Elf_Data *elf_strings__open(const struct elf_file *file, size_t index);

/* NULL where `offset` is outside. Borrowed until elf_file__free. */
const char *elf_strings__get(const Elf_Data *strings, size_t offset);

struct elf_symbols {
	Elf_Data *data;
	Elf_Data *strings;
	size_t n;
};

/* Symbol table by section name; false if absent or malformed. Nothing to release. */
bool elf_symbols__open(const struct elf_file *file, const char *section, struct elf_symbols *ret);

/* Symbol number `i` and its name (borrowed until elf_file__free); NULL if malformed. */
const char *elf_symbols__get(const struct elf_symbols *symbols, size_t i, GElf_Sym *ret);

#endif
