/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CFI_H
#define BRAID_CFI_H

#include <stdint.h>

#include "bpf/unwind_rule.h"
#include "core/base/err.h"
#include "core/elf/elf_file.h"

/* Receives a row: @rule applies from @vaddr up to the next row. A negative return value ends the
 * walk and is propagated. */
typedef int (*cfi_row_fn)(void *ctx, uint64_t vaddr, const struct unwind_rule *rule);

/* Reads the call frame information of a whole file as rows: addresses strictly ascending,
 * neighbours different, the last row UNWIND_NONE. A file without such information gives no row.
 * - Only code inside executable segments counts, and none at address 0 (discarded sections).
 * - A gap gives an UNWIND_NONE row, unless it is padding (fewer than 16 bytes of filling only). The
 *   rule before the padding then extends over it.
 * - A row repeats the rule before it where a description begins, and nowhere else.
 * - Where frame descriptions overlap, the one that starts first has the range. If several start
 *   together, the first one in the section has it. .debug_frame counts only for functions that
 *   .eh_frame does not cover at all.
 *
 * Errors: as unwind_table__build(). */
int cfi__read(const struct elf_file *file, cfi_row_fn row, void *ctx, struct err *err);

#endif
