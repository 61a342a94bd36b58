/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DWARF_H
#define BRAID_DWARF_H

#include <stddef.h>
#include <stdint.h>

#include "core/elf/symbols.h"

struct dwarf;

/* Where the other halves of skeleton units are (core/elf/dwarf_split.h). */
struct dwarf_files {
	/* Opens the .dwo file @name that was built in @dir, or with a @name of NULL the package of
	 * all of them. Returns 0, -ENOENT, -EINTR or -ENOMEM. */
	int (*open)(void *ctx, const char *dir, const char *name, struct elf_file **ret);
	void *ctx;
};

/* Lines and inlined calls of one file by libdw, which opens nothing else. `alt` is the file that it
 * shares entries with (debugfile__open_alt), NULL if there is none. `split` may be NULL. Borrows
 * all until dwarf__free. -ENOENT if it has no usable .debug_info, or lacks what it shares; or
 * -ENOMEM. */
int dwarf__new(const struct elf_file *file, const struct elf_file *alt,
	       const struct dwarf_files *split, struct dwarf **ret);
void dwarf__free(struct dwarf *dwarf); /* NULL is fine */

/* As symbols__resolve. `owner` is the symbol table's name for the function that owns the code; it
 * comes before DWARF's, which does not tell f.cold from f. NULL: the symbol table has none. Returns
 * 0 where DWARF does not know the address, and where nobody knows the function. Where `max` is too
 * small the innermost are left out. */
int dwarf__resolve(struct dwarf *dwarf, uint64_t vaddr, const char *owner, struct symbol_frame *ret,
		   size_t max);

#endif
