/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NODE_COMPILED_H
#define BRAID_NODE_COMPILED_H

#include "runtimes/node/node_functions.h"

/* Machine code that one of V8's compilers made of a function: its inlined functions, and the source
 * position of each instruction. */
struct node_compiled;

/* Opens the Code object that the walker announced for this function. `*ret` is NULL if the object
 * is gone, or belongs to another function. Returns 0 or -ENOMEM. */
int node_compiled__open(const struct node_heap *heap, struct node_functions *functions,
			const struct node_code *code, const struct node_function *function,
			struct node_compiled **ret);
void node_compiled__free(struct node_compiled *compiled); /* NULL is fine; releases functions */

/* A function at an instruction. `function` NULL: it could not be read. node_compiled__scopes()
 * finds all functions at an instruction, inlined functions first. It returns their number, 1 to
 * RUNTIME_SYMBOLS_MAX. */
struct node_scope {
	const struct node_function *function;
	uint32_t line; /* 0: unknown */
};
size_t node_compiled__scopes(const struct node_compiled *compiled, uint32_t offset,
			     struct node_scope ret[RUNTIME_SYMBOLS_MAX]);

/* Returns true if a scope of some offset has no function, as it was unreadable. */
bool node_compiled__lacks_functions(const struct node_compiled *compiled);

#endif
