/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_INSN_TABLES_H
#define BRAID_INSN_TABLES_H

#include "core/insn/insn_steps.h"

#define INSN_CASES_MAX 1024

/* Reads the targets of the INSN_SWITCH at step @at, if the code before it shows the table of its
 * jump. Returns their number. */
size_t insn_tables__read(const struct elf_file *file, const struct insn_steps *steps, size_t at,
			 const struct insn_step *ret[INSN_CASES_MAX]);

#endif
