/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_ENDS_H
#define BRAID_CODE_ENDS_H

#include "core/insn/code_steps.h"

/* Turns calls of functions that never return (exit, abort) into CODE_STOP: what follows them in the
 * file is none of the caller's. 0 or -ENOMEM. */
int code_ends__mark(struct code_steps *steps);

#endif
