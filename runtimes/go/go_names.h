/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_GO_NAMES_H
#define BRAID_GO_NAMES_H

#include "runtimes/go/go_table.h"
#include "runtimes/runtime.h"

/* Where the linker has put data of functions (moduledata.gofunc), to which offsets in the table
 * count since Go 1.18: found by moduledata's first words, which point into the table. 0: not found,
 * and inlined functions have no names. */
uint64_t go_names__data(const struct elf_file *file, const struct go_table *table);

/* The hook `resolve`; `data` as above. `buf` holds names that are not as in the table. */
struct go_names_buf {
	char texts[RUNTIME_SYMBOLS_MAX][512];
};
int go_names__resolve(const struct elf_file *file, const struct go_table *table, uint64_t data,
		      uint64_t vaddr, struct go_names_buf *buf,
		      struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX]);

#endif
