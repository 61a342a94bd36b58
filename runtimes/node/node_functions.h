/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NODE_FUNCTIONS_H
#define BRAID_NODE_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtimes/node/node_positions.h"
#include "runtimes/node/node_scripts.h"

/* Functions of one process, read from their SharedFunctionInfo. */
struct node_functions;
struct node_function;

/* `allowance` is charged for stored functions; borrowed. Returns NULL if out of memory. */
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

/* Reads the key of the SharedFunctionInfo. Returns -EBADMSG if the object is of another type. */
int node_function_key__read(const struct node_heap *heap, uint64_t sfi,
			    struct node_function_key *ret);

/* Returns true if the function of the key is still there. */
bool node_function_key__holds(const struct node_heap *heap, const struct node_function_key *key);

/* Returns a reference, which the caller drops with node_functions__put. `*ret` is NULL if the
 * object at that address does not match the key (any more). Returns 0 or -ENOMEM. */
int node_functions__get(struct node_functions *functions, const struct node_heap *heap,
			const struct node_function_key *key, struct node_function **ret);

/* Drops a reference. The last drop frees the function. NULL is fine. */
void node_functions__put(struct node_functions *functions, struct node_function *function);

const char *node_function__name(const struct node_function *function); /* never NULL */
const char *node_function__file(const struct node_function *function); /* NULL: it has none */

/* Returns the line of a position (as in a SourcePosition) in the function's script, or the
 * function's own line for position -1; 0: unknown. */
uint32_t node_function__line_at(const struct node_function *function, int32_t position);

/* Returns the line of the walker's index in a frame key. */
uint32_t node_function__line(const struct node_function *function, uint32_t index);

/* Returns the line of an offset in Sparkplug's code; `table` as for node_positions__bytecode. */
uint32_t node_function__baseline_line(const struct node_function *function, const uint8_t *table,
				      size_t size, uint32_t offset);

#endif
