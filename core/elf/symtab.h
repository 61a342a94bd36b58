/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SYMTAB_H
#define BRAID_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/range_map.h"
#include "core/elf/elf_file.h"

struct symbol {
	uint64_t start, end; /* end: limit of its section until sealed, if !sized */
	const char *name;    /* mangled, borrowed from the file */
	char *text;	     /* displayed name, set at the first use; owned */
	uint8_t rank;	     /* 0: global, 1: weak, 2: local */
	bool sized;
	bool is_plt; /* shown as NAME@plt */
};

struct quota_account; /* core/base/quota.h */

/* The code symbols of one image. All zero is an empty table. */
struct symtab {
	struct symbol *symbols;
	size_t n, cap;
	struct range_map map;
	struct quota_account *account; /* account of the first file; borrowed */
	uint64_t charged;	       /* bytes charged to @account */
};

/* Adds the code symbols of one section (".symtab", ".dynsym"). The file must outlive the table.
 * Returns their number, or -ENOMEM, -EFBIG, -EINTR. */
int symtab__add_section(struct symtab *symtab, const struct elf_file *file, const char *section);

int symtab__add(struct symtab *symtab, const struct symbol *symbol); /* copies @symbol; as above */

/* Sorts the table and drops aliases. Must be called once, after the last add and before the first
 * find. Selects from several names for one address in this order: with a size, global before weak
 * before local, fewest leading underscores, shortest, first in the alphabet. Returns 0, or an error
 * as symtab__add_section(). */
int symtab__seal(struct symtab *symtab);

/* Returns the symbol that contains @vaddr, or NULL. Borrowed until symtab__done(). */
struct symbol *symtab__find(const struct symtab *symtab, uint64_t vaddr);

/* Returns the demangled name, without symbol version. It lives as long as the table. NULL: out of
 * memory. */
const char *symbol__text(struct symbol *symbol);

void symtab__done(struct symtab *symtab); /* idempotent */

#endif
