/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_INSN_ENDS_H
#define BRAID_INSN_ENDS_H

#include "core/insn/insn_steps.h"

/* Changes calls of functions that never return (exit, abort) to INSN_STOP: the bytes after them in
 * the file do not belong to the caller. Returns 0, -ENOMEM, or a negative errno of quota__look().
 */
int insn_ends__mark(struct insn_steps *steps);

#endif
