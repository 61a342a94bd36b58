/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_ROWS_H
#define BRAID_CODE_ROWS_H

#include <stdbool.h>

#include "core/elf/cfi.h"

/* How functions without call frame information are left, by their machine code
 * (docs/internals/unwinding.md): of files that have none at all, as musl is built, and of programs
 * that such a library is linked into, where symbols say which functions these are; and assembly
 * between functions that are described, of which only what leads to a return is believed. Rows as
 * of cfi__read, but only where no frame description covers the code. -ENOENT: there is nothing to
 * be said; -ENOMEM.
 *
 * A file with much such code is read in blocks. Without @all it is not read: rows of the kind
 * UNWIND_LATER are in the place of rules, and code_reader__block() makes those of a block. */
int code_rows__read(const struct elf_file *file, bool all, cfi_row_fn row, void *ctx);

#define CODE_BLOCK_BYTES	((uint64_t)64 << 10)
#define CODE_BLOCK_START(vaddr) ((vaddr) & ~(CODE_BLOCK_BYTES - 1))

/* Code that the rules of a block depend on lies at most so far from the block. */
#define CODE_BLOCK_REACH ((uint64_t)64 << 10)

/* The code of a file that is read in blocks. @file is borrowed. */
struct code_reader;
int code_reader__new(const struct elf_file *file, struct code_reader **ret);
void code_reader__free(struct code_reader *reader); /* NULL is fine */

/* The rows of the block that has the address. The last one is of the kind UNWIND_NONE, at the end
 * of the block. Errors: as code_rows__function(). */
int code_reader__block(const struct code_reader *reader, uint64_t vaddr, cfi_row_fn row, void *ctx);

/* As code_rows__read(), for the one function in [@start, @end), whatever else describes it. 0 or
 * -ENOMEM, -EFBIG, -EINTR, or what @row returns. */
int code_rows__function(const struct elf_file *file, uint64_t start, uint64_t end, cfi_row_fn row,
			void *ctx);

#endif
