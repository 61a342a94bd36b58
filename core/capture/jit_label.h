/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JIT_LABEL_H
#define BRAID_JIT_LABEL_H

#include <stddef.h>

#include "core/target/jit_maps.h"
#include "core/target/process.h"
#include "runtimes/runtime.h"

/* Finds the runtime of the process that recognizes the name of a piece of code in a map as its own.
 * Returns the runtime's number, and a label with the name for users and the symbol's line; or -1.
 * @symbol and @buf must live as long as the label. */
int jit_label__of(const struct process *process, const struct jit_symbol *symbol, char *buf,
		  size_t size, struct runtime_label *ret);

#endif
