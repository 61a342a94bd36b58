/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_POINTER_ROWS_H
#define BRAID_POINTER_ROWS_H

#include "core/elf/cfi.h"
#include "core/insn/insn_ranges.h"

/* Rows (UNWIND_POINTER) of code without call frame information whose compiler maintains frame
 * pointers, as the prologues of its functions show. */

/* Emits the rows of a file with hardly any call frame information, as cfi__read(). Returns 0,
 * -ENOENT if the file has call frame information or other code, -ENOMEM, -EFBIG, -EINTR, or the
 * result of @row. */
int pointer_rows__read(const struct elf_file *file, cfi_row_fn row, void *ctx);

/* Emits the rows of the code in @range, whatever the rest of the file is. The compiler of that code
 * must set up a frame before any call. */
int pointer_rows__range(const struct elf_file *file, const struct insn_range *range, cfi_row_fn row,
			void *ctx);

#endif
