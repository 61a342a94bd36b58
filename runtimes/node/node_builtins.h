/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NODE_BUILTINS_H
#define BRAID_NODE_BUILTINS_H

#include "core/elf/elf_file.h"
#include "runtimes/runtime.h"

/* The code that V8 has compiled for itself and that is in the file, by its symbols, all of which
 * begin with "Builtins_". A stripped file has none, and its code is found by node_blob.h. */
struct node_builtins {
	struct runtime_range all; /* empty: unknown */
	/* The code that interprets bytecodes: the entry, and the handlers; in the order of
	 * addresses, owned. */
	struct runtime_range *loops;
	size_t n_loops, cap_loops;
};

int node_builtins__read(const struct elf_file *file, struct node_builtins *ret); /* 0 or -ENOMEM */
void node_builtins__done(struct node_builtins *builtins);			 /* idempotent */

#endif
