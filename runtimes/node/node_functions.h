/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NODE_FUNCTIONS_H
#define BRAID_NODE_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtimes/node/node_positions.h"
#include "runtimes/node/node_scripts.h"

/* Functions of one process, as their SharedFunctionInfo tells them. */
struct node_functions;
struct node_function;

/* `allowance`: what is kept is taken from it; borrowed. NULL: out of memory. */
struct node_functions *node_functions__new(struct allowance *allowance);
void node_functions__free(struct node_functions *functions); /* NULL is fine */

/* The words that identify a function, as struct node_function_id. */
struct node_function_key {
	uint64_t sfi, name, script;
	uint64_t script_id, source;
	uint64_t texts;
	uint64_t literal;
};

struct node_function_key node_function_key__of(const struct node_function_id *id);

/* Reads the key of the SharedFunctionInfo. -EBADMSG: it is none. */
int node_function_key__read(const struct node_heap *heap, uint64_t sfi,
			    struct node_function_key *ret);

/* Returns true if the function of the key is still there. */
bool node_function_key__holds(const struct node_heap *heap, const struct node_function_key *key);

/* For the caller to give back with node_functions__put. `*ret` NULL: at the place of the
 * SharedFunctionInfo is not (any more) what the key says. 0 or -ENOMEM. */
int node_functions__get(struct node_functions *functions, const struct node_heap *heap,
			const struct node_function_key *key, struct node_function **ret);

/* The last one who gives it back frees it. NULL is fine. */
void node_functions__put(struct node_functions *functions, struct node_function *function);

const char *node_function__name(const struct node_function *function); /* never NULL */
const char *node_function__file(const struct node_function *function); /* NULL: it has none */

/* The line of a position in its script, as in a SourcePosition; where that is none, of the
 * function. 0: not known. */
uint32_t node_function__line_at(const struct node_function *function, int32_t position);

/* Of an index that the walker has told. */
uint32_t node_function__line(const struct node_function *function, uint32_t index);

/* Of code that Sparkplug has made of it: `table` as node_positions__bytecode wants it. */
uint32_t node_function__baseline_line(const struct node_function *function, const uint8_t *table,
				      size_t size, uint32_t offset);

#endif
