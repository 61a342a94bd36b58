/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_GO_ROWS_H
#define BRAID_GO_ROWS_H

#include "core/elf/cfi.h"

/* How frames of Go functions are left: the hook unwind_rows. */
int go_rows__read(const struct elf_file *file, cfi_row_fn row, void *ctx);

#endif
