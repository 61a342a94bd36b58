/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_ROWS_H
#define BRAID_CODE_ROWS_H

#include "core/unwind/cfi.h"

/* How functions without call frame information are left, by their machine code (docs/unwinding.md):
 * of files that have none at all, as musl is built, and of programs that such a library is linked
 * into, where symbols say which functions these are; and assembly between functions that are
 * described, of which only what leads to a return is believed. Rows as of cfi__read, but only where
 * no frame description covers the code. -ENOENT: there is nothing to be said; -ENOMEM. */
int code_rows__read(const struct elf_file *file, cfi_row_fn row, void *ctx);

/* As code_rows__read(), for the one function in [@start, @end), whatever else describes it. 0 or
 * -ENOMEM, -EFBIG, -EINTR, or what @row returns. */
int code_rows__function(const struct elf_file *file, uint64_t start, uint64_t end, cfi_row_fn row,
			void *ctx);

#endif
