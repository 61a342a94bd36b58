/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_UNWIND_TABLE_H
#define BRAID_UNWIND_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind_rule.h"
#include "core/base/err.h"
#include "core/elf/cfi.h"
#include "core/elf/elf_file.h"
#include "core/insn/insn_ranges.h"
#include "core/insn/insn_rows.h"

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
	/* Link-time range of the code whose rules the file has in its own form; equal: none. */
	uint64_t own_start, own_end;
};

/* Builds the table from .eh_frame, and from .debug_frame for functions that .eh_frame does not
 * cover. The rest is from machine code, within the limits of insn_rows.h. A file without any of
 * them gives an empty table (n_pages 0), which is no error. Returns 0, -ENOMEM, or -EBADMSG if call
 * frame information is malformed from the start. Otherwise a malformed entry only ends the reading:
 * the entries before it are used. */
int unwind_table__build(const struct elf_file *file, struct unwind_table *ret, struct err *err);

/* Reads rows that a file has in a form of its own (runtimes/runtime.h, unwind_rows). As
 * cfi__read(), but returns -ENOENT if the file has none. */
typedef int (*unwind_rows_fn)(const struct elf_file *file, cfi_row_fn row, void *ctx);

/* As unwind_table__build(), with the rows that @rows reads. They have precedence, because a
 * function's own table covers all of its instructions. */
int unwind_table__build_with(const struct elf_file *file, unwind_rows_fn rows,
			     struct unwind_table *ret, struct err *err);

/* As unwind_table__build(), with two differences. @pointers (NULL or empty: none) is a function of
 * the file without call frame information that maintains frame pointers, as its runtime reports.
 * The rules of a large amount of machine code are deferred: rows of the kind UNWIND_LATER are in
 * their place. Uses a table in @dir (NULL: no cache) that was made from the same source. Stores a
 * newly built table there. Images without build-id, and memory images, are never cached. A cache
 * file that is corrupt, truncated, of another version or made from another file is rebuilt and
 * replaced. An unwritable directory costs the cache, not the recording. Several processes may call
 * this at once.
 */
int unwind_table__get(const struct elf_file *file, const char *dir,
		      const struct insn_range *pointers, struct unwind_table *ret, struct err *err);

/* Stores the table for unwind_table__get(). A failure costs only the cache. */
void unwind_table__store(const struct elf_file *file, const char *dir,
			 const struct unwind_table *table);

/* Copies @table to *@ret, with the rules of the block that contains @vaddr added
 * (core/insn/insn_rows.h). Returns 0, -EALREADY if the block's rules are not deferred, -ENOMEM,
 * -EFBIG or -EINTR. */
int unwind_table__add_block(const struct unwind_table *table, const struct insn_reader *reader,
			    uint64_t vaddr, struct unwind_table *ret);

void unwind_table__done(struct unwind_table *table); /* idempotent; a zeroed table is fine */

/* Finds the rule of @vaddr as the kernel half does, for tests and tools. Never returns NULL: rule 0
 * if no table covers the address. Borrowed until unwind_table__done(). */
const struct unwind_rule *unwind_table__find(const struct unwind_table *table, uint64_t vaddr);

/* Returns "$XDG_CACHE_HOME/braid" or "$HOME/.cache/braid", created with mode 0700. The caller frees
 * the string. NULL if neither variable is usable. */
char *unwind_table__default_dir(void);

#endif
