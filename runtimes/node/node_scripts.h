/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NODE_SCRIPTS_H
#define BRAID_NODE_SCRIPTS_H

#include <stdint.h>

#include "runtimes/node/node_heap.h"

/* Scripts of one process: their names and the ends of their lines. A script has no lines if the
 * process's allowance was too small for them. */
struct node_scripts;
struct node_script;

/* `allowance` is charged for stored scripts; borrowed. Returns NULL if out of memory. */
struct node_scripts *node_scripts__new(struct allowance *allowance);
void node_scripts__free(struct node_scripts *scripts); /* NULL is fine */

/* Returns a reference to a Script, which the caller drops with node_scripts__put. `*ret` is NULL if
 * the object is no Script. Returns 0 or -ENOMEM. */
int node_scripts__get(struct node_scripts *scripts, const struct node_heap *heap, uint64_t script,
		      struct node_script **ret);

/* Drops a reference. The last drop frees the script. NULL is fine. */
void node_scripts__put(struct node_scripts *scripts, struct node_script *script);

/* Returns a path, a URL (node:fs), or NULL. */
const char *node_script__file(const struct node_script *script);

/* Returns the line of a character of the source, which is counted from 0; 0: unknown. */
uint32_t node_script__line(const struct node_script *script, int32_t position);

#endif
