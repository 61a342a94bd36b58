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
	char *text;	     /* what to show, made at first use */
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
	struct quota_account *account; /* of the first file; borrowed */
	uint64_t kept;		       /* charged to it */
};

/* Adds the code symbols of one section (".symtab", ".dynsym"). The file has to outlive the table.
 * Returns how many there were, or -ENOMEM, -EFBIG, -EINTR. */
int symtab__add_section(struct symtab *symtab, const struct elf_file *file, const char *section);

int symtab__add(struct symtab *symtab, const struct symbol *symbol); /* copied; as above */

/* To be called once, after the last add and before the first find. Of several names for one
 * address stays: one with a size, global before weak before local, with the fewest leading
 * underscores, the shortest, the first in the alphabet. 0, or as above. */
int symtab__seal(struct symtab *symtab);

/* NULL if no symbol contains the address. Borrowed until symtab__done. */
struct symbol *symtab__find(const struct symtab *symtab, uint64_t vaddr);

/* Demangled name, without symbol version. Lives as long as the table; NULL: out of memory. */
const char *symbol__text(struct symbol *symbol);

void symtab__done(struct symtab *symtab); /* idempotent */

#endif
