/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_NODE_TEXT_BPF_H
#define BRAID_NODE_TEXT_BPF_H

/* A hash of the texts that name a function: its name and the file's. User space reads them later,
 * when the function may be garbage. Of a garbage object the addresses stay what they were until its
 * own memory is used again, and its name's memory may be used before that.
 * runtimes/node/node_text.c computes the same. */

#include "bpf/node_state.bpf.h"

/* Returns the type of the object, or -1. */
static __always_inline int object__type(const struct node_proc_rec *proc, __u64 object)
{
	__u64 map = 0;
	__u16 type = 0;

	if ((object & NODE_TAG_MASK) != NODE_TAG ||
	    node__read(&map, sizeof(map), object - NODE_TAG) || (map & NODE_TAG_MASK) != NODE_TAG ||
	    node__read(&type, sizeof(type), map - NODE_TAG + proc->map_type))
		return -1;
	return type;
}

/* Adds the beginning of a string to state->key.function.texts; of one without characters of its
 * own, its address. Returns 1 if it is not empty. */
__noinline int text__add(struct node_state *state, const struct node_proc_rec *proc, __u64 string)
{
	__u64 *hash, bytes;
	__u32 length = 0;
	int type, i;

	if (!state || !proc)
		return 0;
	hash = &state->key.function.texts;
	type = object__type(proc, string);
	if (type < 0 || type >= proc->text.first_nonstring)
		return 0;
	if (type & proc->text.representation_mask) {
		*hash = node_hash__add(*hash, string);
		return 1;
	}
	if (node__read(&length, sizeof(length), string - NODE_TAG + proc->text.string_length))
		return 0;
	bytes = type & proc->text.one_byte ? length : 2ULL * length;
	if (bytes > NODE_TEXT_BYTES)
		bytes = NODE_TEXT_BYTES;
	__builtin_memset(state->text, 0, sizeof(state->text));
	if (bytes && bpf_probe_read_user(state->text, bytes,
					 (void *)(string - NODE_TAG + proc->text.string_chars)))
		return 0;
	*hash = node_hash__add(*hash, length);
	for (i = 0; i < NODE_TEXT_BYTES / 8; i++)
		*hash = node_hash__add(*hash, state->text[i]);
	return length != 0;
}

/* The same for a string that may be made of two others. */
__noinline int text__add_parts(struct node_state *state, const struct node_proc_rec *proc,
			       __u64 string)
{
	__u32 length = 0, of_first = 0;
	__u64 part = 0;
	int type;

	if (!state || !proc)
		return 0;
	type = object__type(proc, string);
	if (type < 0 || type >= proc->text.first_nonstring ||
	    (type & proc->text.representation_mask) != proc->text.cons)
		return text__add(state, proc, string);
	if (node__read(&part, sizeof(part), string - NODE_TAG + proc->text.cons_first) ||
	    node__read(&length, sizeof(length), string - NODE_TAG + proc->text.string_length) ||
	    node__read(&of_first, sizeof(of_first), part - NODE_TAG + proc->text.string_length))
		return 1;
	text__add(state, proc, part);
	/* The second one of a string that was made flat is empty. */
	if (length != of_first &&
	    !node__read(&part, sizeof(part), string - NODE_TAG + proc->text.cons_second))
		text__add(state, proc, part);
	return 1;
}

/* The same for the word number @i of the ScopeInfo, if that is a string. */
static __always_inline int text__add_of_scope(struct node_state *state,
					      const struct node_proc_rec *proc, __u64 scope,
					      __u64 i)
{
	__u64 word = 0;

	return !node__read(&word, sizeof(word), scope - NODE_TAG + 8 + 8 * i) &&
	       text__add_parts(state, proc, word);
}

/* Adds the name that the ScopeInfo has for its function. */
__noinline int text__add_scope(struct node_state *state, const struct node_proc_rec *proc,
			       __u64 scope)
{
	__u64 word = 0, locals = 0, at;
	__u32 flags;

	if (!state || !proc)
		return 0;
	if (node__read(&word, sizeof(word), scope - NODE_TAG + 8) ||
	    node__read(&locals, sizeof(locals),
		       scope - NODE_TAG + 8 + 8 * proc->text.scope_n_locals))
		return 0;
	flags = proc->text.scope_flags_is_smi ? NODE_SMI(word) : (__u32)word;
	at = node_scope__name(&proc->text, flags, NODE_SMI(locals));
	if (flags & NODE_SCOPE_FUNCTION_VARIABLE) {
		if (text__add_of_scope(state, proc, scope, at))
			return 0;
		at += 2;
	}
	if (flags & NODE_SCOPE_HAS_INFERRED_NAME)
		text__add_of_scope(state, proc, scope, at);
	return 0;
}

/* Sets state->key.function.texts. */
__noinline int function__read_texts(struct node_state *state, const struct node_proc_rec *proc)
{
	struct node_function_id *id;
	__u64 name = 0;

	if (!state || !proc)
		return 0;
	id = &state->key.function;
	id->texts = 0;
	if (object__type(proc, id->name) == proc->text.type_scope_info)
		text__add_scope(state, proc, id->name);
	else
		text__add_parts(state, proc, id->name);
	if (id->script_id &&
	    !node__read(&name, sizeof(name), id->script - NODE_TAG + proc->text.script_name))
		text__add_parts(state, proc, name);
	return 0;
}

#endif
