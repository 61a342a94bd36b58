/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NODE_CODES_H
#define BRAID_NODE_CODES_H

#include "runtimes/node/node_layout.h"
#include "runtimes/runtime.h"

/* The codes that the walker has announced, for all processes of a session. */
struct node_codes;

struct node_codes *node_codes__new(void);	 /* NULL: out of memory */
void node_codes__free(struct node_codes *codes); /* NULL is fine */

/* Attaches a process whose walker will announce numbers. The layout is copied. Returns 0 or
 * -ENOMEM. */
int node_codes__attach(struct node_codes *codes, uint32_t pid, uint32_t space,
		       const struct node_layout *layout);
void node_codes__detach(struct node_codes *codes, uint32_t space);

/* Hooks on_code and symbolize of struct runtime. */
int node_codes__add(struct node_codes *codes, const struct rec_code_object *rec, size_t size);

/* As runtime.forget_codes. */
void node_codes__forget(struct node_codes *codes, const struct u64map *listed);

/* As runtime.count_stale. */
uint32_t node_codes__count_stale(const struct node_codes *codes, uint64_t key);

/* Returns the number of bytes that functions, scripts and code hold. */
size_t node_codes__charged(const struct node_codes *codes);

int node_codes__symbolize(struct node_codes *codes, uint64_t key,
			  struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX]);

#endif
