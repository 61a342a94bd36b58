// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/node/node_text.h"

#include "core/base/util.h"

/* Computes what bpf/node_text.bpf.h does, so each function here has its counterpart there. */

static const struct node_text_layout *text_of(const struct node_heap *heap)
{
	return &heap->layout->rec.text;
}

static bool is_string(const struct node_heap *heap, uint64_t object, uint16_t *ret_type)
{
	return !node_heap__type(heap, object, ret_type) &&
	       *ret_type < text_of(heap)->first_nonstring;
}

static bool add(const struct node_heap *heap, uint64_t string, uint64_t *hash)
{
	const struct node_text_layout *layout = text_of(heap);
	uint64_t words[NODE_TEXT_BYTES / 8] = {}, bytes;
	uint32_t length;
	uint16_t type;

	if (!is_string(heap, string, &type))
		return false;
	if (type & layout->representation_mask) {
		*hash = node_hash__add(*hash, string);
		return true;
	}
	if (node_heap__bytes(heap, string, layout->string_length, &length, sizeof(length)))
		return false;
	bytes = type & layout->one_byte ? length : 2ULL * length;
	bytes = min_of(bytes, (uint64_t)NODE_TEXT_BYTES);
	if (bytes && node_heap__bytes(heap, string, layout->string_chars, words, bytes))
		return false;
	*hash = node_hash__add(*hash, length);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		*hash = node_hash__add(*hash, words[i]);
	return length != 0;
}

static bool add_parts(const struct node_heap *heap, uint64_t string, uint64_t *hash)
{
	const struct node_text_layout *layout = text_of(heap);
	uint32_t length, of_first;
	uint64_t part;
	uint16_t type;

	if (!is_string(heap, string, &type) || (type & layout->representation_mask) != layout->cons)
		return add(heap, string, hash);
	if (node_heap__word(heap, string, layout->cons_first, &part) ||
	    node_heap__bytes(heap, string, layout->string_length, &length, sizeof(length)) ||
	    node_heap__bytes(heap, part, layout->string_length, &of_first, sizeof(of_first)))
		return true;
	add(heap, part, hash);
	if (length != of_first && !node_heap__word(heap, string, layout->cons_second, &part))
		add(heap, part, hash);
	return true;
}

static bool add_of_scope(const struct node_heap *heap, uint64_t scope, uint64_t i, uint64_t *hash)
{
	uint64_t word;

	return !node_heap__word(heap, scope, 8 + 8 * i, &word) && add_parts(heap, word, hash);
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
		add_parts(heap, name, &hash);
	if (script && !node_heap__word(heap, script, text_of(heap)->script_name, &word))
		add_parts(heap, word, &hash);
	return hash;
}
