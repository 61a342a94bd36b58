// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/python/python_blocks.h"

#include <stdlib.h>
#include <string.h>

static const char *const fixed_names[] = {
	[PYTHON_BLOCK_LAMBDA] = "<lambda>", [PYTHON_BLOCK_GENERATOR] = "<genexpr>",
	[PYTHON_BLOCK_LIST] = "<listcomp>", [PYTHON_BLOCK_SET] = "<setcomp>",
	[PYTHON_BLOCK_DICT] = "<dictcomp>",
};

void python_blocks__done(struct python_blocks *blocks)
{
	free(blocks->list);
	free(blocks->names);
	*blocks = (struct python_blocks) { 0 };
}

const char *python_blocks__name(const struct python_blocks *blocks,
				const struct python_block *block)
{
	return block->kind <= PYTHON_BLOCK_CLASS ? blocks->names + block->name
						 : fixed_names[block->kind];
}

/* As compiler_set_qualname does it (Python/compile.c, 3.6 to 3.10). */
static const char *separator(const struct python_block *parent)
{
	bool function =
		parent->kind == PYTHON_BLOCK_FUNCTION || parent->kind == PYTHON_BLOCK_LAMBDA;

	return function ? ".<locals>." : ".";
}

static bool prepend(char *buf, size_t *at, const char *text)
{
	size_t len = strlen(text);

	if (len > *at)
		return false;
	*at -= len;
	memcpy(buf + *at, text, len);
	return true;
}

static const char *qualify(const struct python_blocks *blocks, uint32_t index, char *buf,
			   size_t size)
{
	const struct python_block *block = &blocks->list[index];
	size_t at = size - 1;

	buf[at] = '\0';
	if (!prepend(buf, &at, python_blocks__name(blocks, block)))
		return NULL;
	while (block->parent != PYTHON_MODULE && !block->global) {
		block = &blocks->list[block->parent];
		if (!prepend(buf, &at, separator(block)) ||
		    !prepend(buf, &at, python_blocks__name(blocks, block)))
			return NULL;
	}
	return buf + at;
}

static bool same_qualname(const struct python_blocks *blocks, uint32_t a, uint32_t b)
{
	while (a != b) {
		const struct python_block *x, *y;

		if (a == PYTHON_MODULE || b == PYTHON_MODULE)
			return false;
		x = &blocks->list[a];
		y = &blocks->list[b];
		if (x->kind != y->kind || x->global != y->global ||
		    strcmp(python_blocks__name(blocks, x), python_blocks__name(blocks, y)))
			return false;
		if (x->global)
			return true;
		a = x->parent;
		b = y->parent;
	}
	return true;
}

static bool is_within(const struct python_blocks *blocks, uint32_t index, uint32_t outer)
{
	while (index != PYTHON_MODULE && index != outer)
		index = blocks->list[index].parent;
	return index == outer;
}

static bool starts_at(const struct python_block *block, uint32_t line)
{
	return block->first_line == line || block->inner_line == line;
}

static bool goes_on_at(const struct python_block *block, uint32_t line)
{
	return block->first_line <= line && line <= block->last_line;
}

/* Returns true if a block was found. Sets `ret_index` to the block, or to PYTHON_MODULE for several
 * blocks with different qualified names. With `innermost`, a block within another one is taken. */
static bool find(const struct python_blocks *blocks, const char *name, uint32_t line,
		 bool (*is_at)(const struct python_block *, uint32_t), bool innermost,
		 uint32_t *ret_index)
{
	uint32_t found = PYTHON_MODULE;

	for (uint32_t i = 0; i < blocks->n; i++) {
		const struct python_block *block = &blocks->list[i];

		if (!is_at(block, line) || strcmp(python_blocks__name(blocks, block), name))
			continue;
		if (found == PYTHON_MODULE || (innermost && is_within(blocks, i, found))) {
			found = i;
		} else if (!(innermost && is_within(blocks, found, i)) &&
			   !same_qualname(blocks, i, found)) {
			*ret_index = PYTHON_MODULE;
			return true;
		}
	}
	*ret_index = found;
	return found != PYTHON_MODULE;
}

const char *python_blocks__qualname(const struct python_blocks *blocks, const char *name,
				    uint32_t line, char *buf, size_t size)
{
	uint32_t index;

	if (!find(blocks, name, line, starts_at, false, &index) &&
	    !find(blocks, name, line, goes_on_at, true, &index))
		return NULL;
	return index == PYTHON_MODULE ? NULL : qualify(blocks, index, buf, size);
}
