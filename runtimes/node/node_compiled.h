/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NODE_COMPILED_H
#define BRAID_NODE_COMPILED_H

#include "runtimes/node/node_functions.h"

/* Code that one of V8's compilers has made of a function: which functions were put into it, and
 * where in the source each instruction comes from. */
struct node_compiled;

/* Of the Code that the walker has told, of this function. `*ret` NULL: it is gone, or is another
 * function's. 0 or -ENOMEM. */
int node_compiled__open(const struct node_heap *heap, struct node_functions *functions,
			const struct node_code *code, const struct node_function *function,
			struct node_compiled **ret);
void node_compiled__free(struct node_compiled *compiled); /* NULL is fine; gives functions back */

/* The functions at an instruction, those that were put into others first; `function` NULL: it
 * could not be read. Returns their number, 1 to RUNTIME_SYMBOLS_MAX. */
struct node_scope {
	const struct node_function *function;
	uint32_t line; /* 0: not known */
};
size_t node_compiled__scopes(const struct node_compiled *compiled, uint32_t offset,
			     struct node_scope ret[RUNTIME_SYMBOLS_MAX]);

#endif
