/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DWARF_H
#define BRAID_DWARF_H

#include <stddef.h>
#include <stdint.h>

#include "core/elf/symbols.h"

struct dwarf;

/* The source of the other halves of skeleton units (core/elf/dwarf_split.h). */
struct dwarf_files {
	/* Opens the .dwo file @name that was built in @dir, or with a @name of NULL the package of
	 * all of them. Returns 0, -ENOENT, -EINTR or -ENOMEM. */
	int (*open)(void *ctx, const char *dir, const char *name, struct elf_file **ret);
	void *ctx;
};

/* Opens the lines and inlined calls of one file by libdw, which opens no other file. @alt is the
 * file that @file shares entries with (debugfile__open_alt()), or NULL. @split may be NULL. All are
 * borrowed until dwarf__free(). Returns 0, -ENOENT if the file has no usable .debug_info or lacks
 * the shared entries, or -ENOMEM. */
int dwarf__new(const struct elf_file *file, const struct elf_file *alt,
	       const struct dwarf_files *split, struct dwarf **ret);
void dwarf__free(struct dwarf *dwarf); /* NULL is fine */

/* Resolves @vaddr as symbols__resolve(). @owner is the symbol table's name for the function that
 * owns the machine code; NULL: it has none. @owner has precedence over DWARF's name, which does not
 * distinguish f.cold from f. Returns 0 if DWARF does not cover the address, and if neither source
 * has the function. If @max is too small, leaves out the innermost frames. */
int dwarf__resolve(struct dwarf *dwarf, uint64_t vaddr, const char *owner, struct symbol_frame *ret,
		   size_t max);

#endif
