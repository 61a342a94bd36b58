/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ELF_WORDS_H
#define BRAID_ELF_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/elf/elf_file.h"

/* The data of one file as its dynamic linker makes them, by link-time address: tables of pointers,
 * which a file that may be loaded anywhere has in its relocations only. */
struct elf_words;

/* In place of a pointer to what another file defines. */
#define ELF_WORD_IMPORT UINT64_MAX

/* 0; -ENOENT: it has no data, or more than is reasonable to look through; -ENOMEM. */
int elf_words__open(const struct elf_file *file, struct elf_words **ret);
void elf_words__free(struct elf_words *words); /* NULL is fine */

/* The word at `vaddr`; false where the file has none. */
bool elf_words__get(const struct elf_words *words, uint64_t vaddr, uint64_t *ret);

/* The string at `vaddr`, of at most `max` characters; NULL: there is none. Borrowed. */
const char *elf_words__text(const struct elf_words *words, uint64_t vaddr, size_t max);

/* Does the file have code there? */
bool elf_words__is_code(const struct elf_words *words, uint64_t vaddr);

/* The i-th piece of writable data: its first address, a multiple of 8, and number of words. False:
 * there are no more. */
bool elf_words__writable(const struct elf_words *words, size_t i, uint64_t *ret_vaddr,
			 size_t *ret_n);

#endif
