/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_ENDS_H
#define BRAID_CODE_ENDS_H

#include "core/insn/code_steps.h"

/* Changes calls of functions that never return (exit, abort) to CODE_STOP: the bytes after them in
 * the file do not belong to the caller. Returns 0, -ENOMEM, or a negative errno of quota__look().
 */
int code_ends__mark(struct code_steps *steps);

#endif
