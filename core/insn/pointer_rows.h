/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_POINTER_ROWS_H
#define BRAID_POINTER_ROWS_H

#include "core/elf/cfi.h"
#include "core/insn/code_ranges.h"

/* Rows (UNWIND_POINTER) of code that has no call frame information, and whose compiler keeps frame
 * pointers, as the prologues of its functions show. */

/* The rows of a file that has hardly any call frame information: as cfi__read. 0; -ENOENT: the file
 * has call frame information, or other code; -ENOMEM, -EFBIG, -EINTR, or what @row returns. */
int pointer_rows__read(const struct elf_file *file, cfi_row_fn row, void *ctx);

/* The rows of the code in @range, of which it is known that its compiler makes a frame before
 * it calls anything, whatever the rest of the file is. */
int pointer_rows__range(const struct elf_file *file, const struct code_range *range, cfi_row_fn row,
			void *ctx);

#endif
