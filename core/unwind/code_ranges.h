/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_RANGES_H
#define BRAID_CODE_RANGES_H

#include "core/unwind/code_steps.h"

/* The code of a file that call frame information leaves out, and where its functions start. 0, also
 * where there is none that is to be read; -ENOMEM. */
int code_ranges__read(const struct elf_file *file, struct code_steps *ret);

/* Is there any? */
bool code_ranges__any(const struct elf_file *file);

#endif
