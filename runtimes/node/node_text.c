// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/node/node_text.h"

#include "core/base/util.h"

/* Computes the same values as bpf/node_text.bpf.h. Each function here has its counterpart there. */

static const struct node_text_layout *text_of(const struct node_heap *heap)
{
	return &heap->layout->rec.text;
}

static bool is_string(const struct node_heap *heap, uint64_t object, uint16_t *ret_type)
{
	return !node_heap__type(heap, object, ret_type) &&
	       *ret_type < text_of(heap)->first_nonstring;
}

struct walk {
	const struct node_heap *heap;
	uint64_t *hash;
	uint64_t parts[NODE_TEXT_PARTS];
	uint32_t n_parts, left;
};

static int add_flat(struct walk *walk, uint64_t string, bool wide)
{
	const struct node_text_layout *layout = text_of(walk->heap);
	uint8_t narrow[NODE_TEXT_CHARS];
	uint16_t chars[NODE_TEXT_CHARS];
	uint32_t length;

	if (node_heap__bytes(walk->heap, string, layout->string_length, &length, sizeof(length)))
		return -1;
	length = min_of(length, walk->left);
	if (length && node_heap__bytes(walk->heap, string, layout->string_chars,
				       wide ? (void *)chars : narrow, wide ? 2 * length : length))
		return -1;
	for (uint32_t i = 0; i < length; i++)
		*walk->hash = node_hash__add(*walk->hash, wide ? chars[i] : narrow[i]);
	walk->left -= length;
	return 0;
}

static int step(struct walk *walk)
{
	const struct node_text_layout *layout = text_of(walk->heap);
	uint32_t n = walk->n_parts - 1;
	uint64_t string;
	uint16_t type, representation;

	if (n > NODE_TEXT_PARTS - 2)
		return -1;
	string = walk->parts[n];
	if (!is_string(walk->heap, string, &type))
		return -1;
	representation = type & layout->representation_mask;
	walk->n_parts = n;
	if (!representation)
		return add_flat(walk, string, !(type & layout->one_byte));
	if (representation == layout->thin) {
		walk->n_parts = n + 1;
		return node_heap__word(walk->heap, string, layout->thin_actual, &walk->parts[n]);
	}
	if (representation != layout->cons)
		return -1;
	walk->n_parts = n + 2;
	return node_heap__word(walk->heap, string, layout->cons_second, &walk->parts[n]) ||
	       node_heap__word(walk->heap, string, layout->cons_first, &walk->parts[n + 1]);
}

static bool add(const struct node_heap *heap, uint64_t string, uint64_t *hash)
{
	struct walk walk = { heap, hash, { string }, 1, NODE_TEXT_CHARS };
	uint32_t length;
	uint16_t type;

	if (!is_string(heap, string, &type) ||
	    node_heap__bytes(heap, string, text_of(heap)->string_length, &length, sizeof(length)))
		return false;
	*hash = node_hash__add(*hash, length);
	for (int i = 0; i < NODE_TEXT_STEPS && walk.n_parts && walk.left; i++)
		if (step(&walk))
			break;
	return length != 0;
}

static bool add_of_scope(const struct node_heap *heap, uint64_t scope, uint64_t i, uint64_t *hash)
{
	uint64_t word;

	return !node_heap__word(heap, scope, 8 + 8 * i, &word) && add(heap, word, hash);
}

static void add_scope(const struct node_heap *heap, uint64_t scope, uint64_t *hash)
{
	const struct node_text_layout *layout = text_of(heap);
	uint64_t word, locals, at;
	uint32_t flags;

	if (node_heap__word(heap, scope, 8, &word) ||
	    node_heap__word(heap, scope, 8 + 8 * layout->scope_n_locals, &locals))
		return;
	flags = layout->scope_flags_is_smi ? NODE_SMI(word) : (uint32_t)word;
	at = node_scope__name(layout, flags, NODE_SMI(locals));
	if (flags & NODE_SCOPE_FUNCTION_VARIABLE) {
		if (add_of_scope(heap, scope, at, hash))
			return;
		at += 2;
	}
	if (flags & NODE_SCOPE_HAS_INFERRED_NAME)
		add_of_scope(heap, scope, at, hash);
}

uint64_t node_text__hash(const struct node_heap *heap, uint64_t name, uint64_t script)
{
	uint64_t hash = 0, word;

	if (node_heap__is(heap, name, text_of(heap)->type_scope_info))
		add_scope(heap, name, &hash);
	else
		add(heap, name, &hash);
	if (script && !node_heap__word(heap, script, text_of(heap)->script_name, &word))
		add(heap, word, &hash);
	return hash;
}
