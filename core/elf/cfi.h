/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CFI_H
#define BRAID_CFI_H

#include <stdint.h>

#include "bpf/unwind_rule.h"
#include "core/base/err.h"
#include "core/elf/elf_file.h"

/* `rule` holds from `vaddr` up to the next row. A negative return ends the walk and is handed
 * through. */
typedef int (*cfi_row_fn)(void *ctx, uint64_t vaddr, const struct unwind_rule *rule);

/* Call frame information of a whole file as rows: addresses strictly ascending, neighbours
 * different, the last row UNWIND_NONE; no row at all where there is no such information.
 * - Only code inside executable segments counts, and none at address 0 (discarded sections).
 * - A gap gives an UNWIND_NONE row, unless it is padding (less than 16 bytes that hold nothing but
 *   filling): the rule in front of it then extends over it.
 * - A row repeats the rule in front of it where a description begins, and nowhere else.
 * - Where frame descriptions overlap, the one that starts first has the range, of those that
 *   start together the one that comes first in the section; .debug_frame counts only for
 *   functions of which .eh_frame covers nothing.
 * Errors: as unwind_table__build. */
int cfi__read(const struct elf_file *file, cfi_row_fn row, void *ctx, struct err *err);

#endif
