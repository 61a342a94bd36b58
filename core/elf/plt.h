/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PLT_H
#define BRAID_PLT_H

#include "core/elf/elf_file.h"
#include "core/elf/symtab.h"

/* names of the sections that contain stubs */
#define PLT_SECTIONS 3
extern const char *const plt__sections[PLT_SECTIONS];

/* Adds a symbol to @ret (not yet sealed) for each stub in .plt, .plt.sec and .plt.got. The symbol
 * has the name of the function whose address the stub jumps through. @symtab (sealed) names the
 * resolvers of indirect functions. Leaves out malformed entries. Returns 0 or a negative errno. */
int plt__add(struct symtab *ret, const struct elf_file *file, const struct symtab *symtab);

/* Returns the address of the function in @file that the stub at @vaddr jumps to, unless another
 * file replaces it. Returns 0 if the file does not define it, or there is no stub. */
uint64_t plt__own_function(const struct elf_file *file, uint64_t vaddr);

/* Returns true if there is a stub at @vaddr. */
bool plt__is_stub(const struct elf_file *file, uint64_t vaddr);

#endif
