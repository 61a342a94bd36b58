/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PLT_H
#define BRAID_PLT_H

#include "core/elf/elf_file.h"
#include "core/elf/symtab.h"

/* Adds to `ret` (still to be sealed) a symbol for each stub in .plt, .plt.sec and .plt.got, named
 * after the symbol whose address it jumps through. `symtab` (sealed) names the resolvers behind
 * stubs of indirect functions. 0 or -ENOMEM; what is malformed is left out. */
int plt__add(struct symtab *ret, const struct elf_file *file, const struct symtab *symtab);

#endif
