/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_GO_ROWS_H
#define BRAID_GO_ROWS_H

#include "core/elf/cfi.h"

/* The hook unwind_rows for Go's functions. */
int go_rows__read(const struct elf_file *file, cfi_row_fn row, void *ctx);

#endif
