/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JIT_LABELS_H
#define BRAID_JIT_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/code_maps.h"
#include "core/tracker.h"
#include "runtimes/runtime.h"

/* Which runtime the code of a process belongs to, and what it is called for people. */
struct jit_labels {
	const struct runtime *const *runtimes; /* all known, NULL-terminated */
	uint32_t enabled;		       /* bit n: runtimes[n] is wanted */
};

/* Does runtime number `i` know names of the process's code, if there is a map? */
bool jit_labels__know(const struct jit_labels *labels, const struct process *process, int i);

/* Does any? */
bool jit_labels__wanted(const struct jit_labels *labels, const struct process *process);

/* Is it memory that holds what the process has made itself, and no file? Not where nothing is known
 * to be mapped (NULL): that is a file which was not read in time, mostly. */
bool jit_labels__is_made(const struct mapped *mapped);

/* The attached runtime that makes code, if no file backs `mapped` (may be NULL); or NULL. */
const struct runtime *jit_labels__compiler(const struct jit_labels *labels,
					   const struct process *process,
					   const struct mapped *mapped);

/* jitdump_skew of the process's runtimes. */
uint32_t jit_labels__skew(const struct jit_labels *labels, const struct process *process);

/* The number of the runtime that knows the symbol as its own, with the name for people and the
 * symbol's line; or -1. `symbol` and `buf` must live as long as the label. */
int jit_labels__label(const struct jit_labels *labels, const struct process *process,
		      const struct code_symbol *symbol, char *buf, size_t size,
		      struct runtime_label *ret);

#endif
