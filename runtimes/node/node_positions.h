/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NODE_POSITIONS_H
#define BRAID_NODE_POSITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* V8's tables of source positions. They are read from the memory of a process: untrusted. */

/* A SourcePosition (deps/v8/src/codegen/source-position.h): the offset in the script, and the
 * number of the inlining. */
#define NODE_POSITION_IS_EXTERNAL(value) ((value)&1)
#define NODE_POSITION_OFFSET(value)	 ((int32_t)((value) >> 1 & 0x3fffffff) - 1) /* -1: none */
#define NODE_POSITION_INLINING(value)	 ((int32_t)((value) >> 31 & 0xffff) - 1)    /* -1: none */

/* A table of the code offsets at which positions begin (source-position-table.cc). */
struct node_positions {
	uint8_t *table;
	size_t size;
	bool with_bits; /* a distance has two flag bits (V8 14); otherwise, its sign is the flag */
};

/* Finds the SourcePosition of the code at @offset. Returns false if there is none, or if the table
 * is malformed before it. */
bool node_positions__find(const struct node_positions *positions, uint32_t offset, uint64_t *ret);

struct node_bytecodes {
	const uint8_t *code;
	size_t n;
	const uint8_t *sizes; /* as in struct node_layout */
	size_t n_sizes;
};

/* Finds the bytecode whose code by Sparkplug contains @offset. The table has the length of each
 * bytecode's code (deps/v8/src/baseline/bytecode-offset-iterator.h). Returns false as
 * node_positions__find(). Code before the first bytecode's code belongs to the first bytecode. */
bool node_positions__bytecode(const uint8_t *table, size_t size,
			      const struct node_bytecodes *bytecodes, uint32_t offset,
			      uint32_t *ret);

#endif
