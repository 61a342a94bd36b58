/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_BLOCKS_H
#define BRAID_PYTHON_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum python_block_kind {
	PYTHON_BLOCK_FUNCTION,
	PYTHON_BLOCK_CLASS,
	PYTHON_BLOCK_LAMBDA,
	PYTHON_BLOCK_GENERATOR,
	PYTHON_BLOCK_LIST,
	PYTHON_BLOCK_SET,
	PYTHON_BLOCK_DICT,
};

/* A part of a Python source that becomes a code object of its own. */
struct python_block {
	uint8_t kind;
	bool global;	 /* its parent says so: the plain name is the qualified one */
	uint32_t parent; /* index, or PYTHON_MODULE */
	uint32_t name;	 /* offset in the names; functions and classes only */
	uint32_t first_line, last_line;
	uint32_t inner_line; /* line of a comprehension's first token, which is its first line
				in 3.6 and 3.7 */
};

#define PYTHON_MODULE UINT32_MAX

/* Those of one source, without the module. A zeroed struct has none. */
struct python_blocks {
	struct python_block *list;
	size_t n, cap;
	char *names;
	size_t names_len, names_cap;
};

void python_blocks__done(struct python_blocks *blocks); /* idempotent */

const char *python_blocks__name(const struct python_blocks *blocks,
				const struct python_block *block);

/* Returns the qualified name of the block of this name that starts at `line` (the line of its first
 * decorator, if any). If there is none, the innermost block that includes `line` is taken. The
 * result lies within `buf`. Returns NULL if no block is found, or several with different qualified
 * names, or if `buf` is too small. */
const char *python_blocks__qualname(const struct python_blocks *blocks, const char *name,
				    uint32_t line, char *buf, size_t size);

#endif
