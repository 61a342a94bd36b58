/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NODE_SCRIPTS_H
#define BRAID_NODE_SCRIPTS_H

#include <stdint.h>

#include "runtimes/node/node_heap.h"

/* Scripts of one process: what they are called, and where their lines end. One without lines may be
 * one for whose lines the process's allowance was too small. */
struct node_scripts;
struct node_script;

/* `allowance`: what is kept is taken from it; borrowed. NULL: out of memory. */
struct node_scripts *node_scripts__new(struct allowance *allowance);
void node_scripts__free(struct node_scripts *scripts); /* NULL is fine */

/* Of a Script, for the caller to give back with node_scripts__put. `*ret` NULL: it is none. 0 or
 * -ENOMEM. */
int node_scripts__get(struct node_scripts *scripts, const struct node_heap *heap, uint64_t script,
		      struct node_script **ret);

/* The last one who gives it back frees it. NULL is fine. */
void node_scripts__put(struct node_scripts *scripts, struct node_script *script);

/* A path, a URL (node:fs), or NULL. */
const char *node_script__file(const struct node_script *script);

/* Of a character of the source, counted from 0; 0: not known. */
uint32_t node_script__line(const struct node_script *script, int32_t position);

#endif
