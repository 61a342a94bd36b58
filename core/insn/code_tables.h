/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_TABLES_H
#define BRAID_CODE_TABLES_H

#include "core/insn/code_steps.h"

#define CODE_CASES_MAX 1024

/* Reads the targets of the CODE_SWITCH at step @at, if the code before it shows the table of its
 * jump. Returns their number. */
size_t code_tables__read(const struct elf_file *file, const struct code_steps *steps, size_t at,
			 const struct code_step *ret[CODE_CASES_MAX]);

#endif
