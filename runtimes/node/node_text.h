/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NODE_TEXT_H
#define BRAID_NODE_TEXT_H

#include "runtimes/node/node_heap.h"

/* Returns the hash of the texts that name a function: @name is the name or ScopeInfo of its
 * SharedFunctionInfo, @script its Script; 0: it has none. */
uint64_t node_text__hash(const struct node_heap *heap, uint64_t name, uint64_t script);

#endif
