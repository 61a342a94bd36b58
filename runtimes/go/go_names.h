/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_GO_NAMES_H
#define BRAID_GO_NAMES_H

#include "runtimes/go/go_table.h"
#include "runtimes/runtime.h"

/* In place of gofunc: the file has inlined functions, and no word of its struct moduledata leads to
 * their trees. */
#define GO_NAMES_NO_DATA UINT64_MAX

/* Finds the data of functions (moduledata.gofunc), from which offsets in the table count since Go
 * 1.18. Its offset in struct moduledata differs between releases, so the word is chosen by content:
 * from it the trees of inlined calls of up to 64 functions must be well formed. *ret is 0 up to
 * Go 1.17 and where nothing was inlined. Returns 0; -ENOENT with GO_NAMES_NO_DATA if no word
 * passes, or two; -ENOMEM. */
int go_names__data(const struct elf_file *file, const struct go_table *table, uint64_t *ret);

/* The hook `resolve`; `data` as above. `buf` holds names that are not as in the table. A function
 * whose inlined calls cannot be read has neither file nor line at such a place. */
struct go_names_buf {
	char texts[RUNTIME_SYMBOLS_MAX][512];
};
int go_names__resolve(const struct elf_file *file, const struct go_table *table, uint64_t data,
		      uint64_t vaddr, struct go_names_buf *buf,
		      struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX]);

#endif
