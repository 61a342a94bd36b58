/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PLT_H
#define BRAID_PLT_H

#include "core/elf/elf_file.h"
#include "core/elf/symtab.h"

/* Names of the sections that have stubs. */
#define PLT_SECTIONS 3
extern const char *const plt__sections[PLT_SECTIONS];

/* Adds to `ret` (still to be sealed) a symbol for each stub in .plt, .plt.sec and .plt.got, named
 * after the symbol whose address it jumps through. `symtab` (sealed) names the resolvers behind
 * stubs of indirect functions. 0 or -ENOMEM; what is malformed is left out. */
int plt__add(struct symtab *ret, const struct elf_file *file, const struct symtab *symtab);

/* Returns where the file has the function that the stub at @vaddr jumps to, if no other file takes
 * its place; 0: the file does not have it, or there is no stub. */
uint64_t plt__own_function(const struct elf_file *file, uint64_t vaddr);

/* Is there a stub at @vaddr? */
bool plt__is_stub(const struct elf_file *file, uint64_t vaddr);

#endif
