/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ELF_WORDS_H
#define BRAID_ELF_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/elf/elf_file.h"

/* The data of one file after relocation, by link-time address. Tables of pointers are only in the
 * relocations of a file that may be loaded at any address. */
struct elf_words;

/* Value of a pointer to a symbol that another file defines. */
#define ELF_WORD_IMPORT UINT64_MAX

/* Reads the data of @file. Returns 0, -ENOENT if it has no data or more than 64 MiB, or -ENOMEM. */
int elf_words__open(const struct elf_file *file, struct elf_words **ret);
void elf_words__free(struct elf_words *words); /* NULL is fine */

/* Reads the word at @vaddr. Returns false if the file has none. */
bool elf_words__get(const struct elf_words *words, uint64_t vaddr, uint64_t *ret);

/* Returns the string at @vaddr, of at most @max characters, or NULL. Borrowed. */
const char *elf_words__text(const struct elf_words *words, uint64_t vaddr, size_t max);

/* Returns true if the file has code at @vaddr. */
bool elf_words__is_code(const struct elf_words *words, uint64_t vaddr);

/* Returns piece @i of writable data: its first address, a multiple of 8, and number of words.
 * Returns false if there are no more. */
bool elf_words__writable(const struct elf_words *words, size_t i, uint64_t *ret_vaddr,
			 size_t *ret_n);

#endif
