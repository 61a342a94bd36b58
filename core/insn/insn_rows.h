/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_INSN_ROWS_H
#define BRAID_INSN_ROWS_H

#include <stdbool.h>

#include "core/elf/cfi.h"

/* Builds rules for functions without call frame information from their machine code
 * (docs/internals/unwinding.md). There are three cases. Files without any such information, as musl
 * is built. Programs with such a library linked in, where symbols name its functions. Assembly
 * between described functions, where only code that leads to a return gets rules. Emits rows as
 * cfi__read(), but only where no frame description covers the code. Returns 0, -ENOENT if there is
 * no such code, or another negative errno.
 *
 * A file with a large amount of such code is read in blocks. Without @all it is not read: rows of
 * the kind UNWIND_LATER are in the place of rules, and insn_reader__block() builds those of a
 * block. */
int insn_rows__read(const struct elf_file *file, bool all, cfi_row_fn row, void *ctx);

#define INSN_BLOCK_BYTES	((uint64_t)64 << 10)
#define INSN_BLOCK_START(vaddr) ((vaddr) & ~(INSN_BLOCK_BYTES - 1))

/* Largest distance from a block of the code that its rules depend on. */
#define INSN_BLOCK_REACH ((uint64_t)64 << 10)

/* The code of a file that is read in blocks. @file is borrowed. */
struct insn_reader;
int insn_reader__new(const struct elf_file *file, struct insn_reader **ret);
void insn_reader__free(struct insn_reader *reader); /* NULL is fine */

/* Emits the rows of the block that contains @vaddr. The last row is of the kind UNWIND_NONE, at the
 * end of the block. Errors: as insn_rows__function(). */
int insn_reader__block(const struct insn_reader *reader, uint64_t vaddr, cfi_row_fn row, void *ctx);

/* As insn_rows__read(), for the one function in [@start, @end), even if a description covers it.
 * Returns 0, -ENOMEM, -EFBIG, -EINTR, or the result of @row. */
int insn_rows__function(const struct elf_file *file, uint64_t start, uint64_t end, cfi_row_fn row,
			void *ctx);

#endif
