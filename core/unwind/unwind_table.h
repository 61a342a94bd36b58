/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_UNWIND_TABLE_H
#define BRAID_UNWIND_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind_rule.h"
#include "core/base/err.h"
#include "core/elf/cfi.h"
#include "core/elf/elf_file.h"
#include "core/insn/code_ranges.h"
#include "core/insn/code_rows.h"

/* The unwind table of one image, in the words that the kernel half reads (bpf/unwind_rule.h). */
struct unwind_table {
	uint64_t vaddr_start; /* link-time address of page 0, a multiple of UNWIND_PAGE_BYTES */
	uint32_t n_pages;
	uint32_t rules_at; /* index into words */
	uint32_t rows_at;  /* index into words */
	uint32_t n_rules, n_rows;
	uint32_t n_unsupported; /* rows whose rule could not be expressed */
	uint32_t n_words;
	uint32_t *words; /* owned */
	/* Link-time addresses of the code with rules in a form of the file's own; equal: none. */
	uint64_t own_start, own_end;
};

/* Builds from .eh_frame, from .debug_frame for what .eh_frame leaves open, and from machine code
 * for what neither covers, as far as code_rows.h reads that. A file without either gives an empty
 * table (n_pages 0), which is no error. -ENOMEM; -EBADMSG for call frame information that is
 * malformed from the start (what can be read before a malformed entry is kept and the rest
 * dropped). */
int unwind_table__build(const struct elf_file *file, struct unwind_table *ret, struct err *err);

/* Rows that a file has in a form of its own (runtimes/runtime.h, unwind_rows): as cfi__read, but
 * -ENOENT where it has none. */
typedef int (*unwind_rows_fn)(const struct elf_file *file, cfi_row_fn row, void *ctx);

/* The same with what `rows` tells, which counts more: a function's own table has all of its
 * instructions. */
int unwind_table__build_with(const struct elf_file *file, unwind_rows_fn rows,
			     struct unwind_table *ret, struct err *err);

/* As build, with the rows of code without call frame information that a runtime knows to keep frame
 * pointers, @pointers (NULL or empty: none): a function of the file.
 * But rules of much machine code are not made: rows of the kind UNWIND_LATER are in their place.
 * Looks first in `dir`
 * (NULL: no cache) for a table made of the same and stores a newly built one there. Images without
 * build-id, and memory images, are never cached. A cache file that is corrupt, truncated, of
 * another version or made from another file is rebuilt and replaced; an unwritable directory costs
 * the cache, not the recording. Several processes may do this at once. */
int unwind_table__get(const struct elf_file *file, const char *dir,
		      const struct code_range *pointers, struct unwind_table *ret, struct err *err);

/* Stores the table for unwind_table__get(). Failing costs the cache only. */
void unwind_table__store(const struct elf_file *file, const char *dir,
			 const struct unwind_table *table);

/* Makes @table anew with the rules of the block that has @vaddr (core/insn/code_rows.h).
 * -EALREADY if its rules are made, or none are to be made; -ENOMEM, -EFBIG, -EINTR. */
int unwind_table__add_block(const struct unwind_table *table, const struct code_reader *reader,
			    uint64_t vaddr, struct unwind_table *ret);

void unwind_table__done(struct unwind_table *table); /* idempotent; a zeroed table is fine */

/* Same search as the kernel half does, for tests and tools. Never NULL: rule 0 where no table
 * covers the address. Borrowed until unwind_table__done. */
const struct unwind_rule *unwind_table__find(const struct unwind_table *table, uint64_t vaddr);

/* "$XDG_CACHE_HOME/braid" or "$HOME/.cache/braid", created with mode 0700; owned string, or NULL
 * where neither variable is usable. */
char *unwind_table__default_dir(void);

#endif
