/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_NODE_TEXT_BPF_H
#define BRAID_NODE_TEXT_BPF_H

/* Hashes the texts that name a function: its name and the file's. User space reads them later, when
 * the function may be garbage. The addresses in a garbage object remain until its own memory is
 * used again, and its name's memory may be used before that. runtimes/node/node_text.c computes the
 * same hash. */

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

/* Adds the characters of a flat string, at most state->text_left of them. */
__noinline int text__add_flat(struct node_state *state, const struct node_proc_rec *proc,
			      __u64 string, int wide)
{
	__u64 hash, bytes;
	__u32 length = 0, i, c;

	if (!state || !proc ||
	    node__read(&length, sizeof(length), string - NODE_TAG + proc->text.string_length))
		return -1;
	if (length > state->text_left)
		length = state->text_left;
	bytes = wide ? 2ULL * length : length;
	if (bytes > sizeof(state->text))
		return -1;
	if (bytes && bpf_probe_read_user(state->text, bytes,
					 (void *)(string - NODE_TAG + proc->text.string_chars)))
		return -1;
	hash = state->key.function.texts;
	for (i = 0; i < NODE_TEXT_CHARS; i++) {
		if (i >= length)
			break;
		c = wide ? ((__u16 *)state->text)[i] : ((__u8 *)state->text)[i];
		hash = node_hash__add(hash, c);
	}
	state->key.function.texts = hash;
	state->text_left -= length;
	return 0;
}

/* Returns the address of a part. The mask is applied where the verifier of Linux 6.1 sees it. */
static __always_inline __u64 *part__at(struct node_state *state, __u64 n)
{
	asm volatile("" : "+r"(n));
	return &state->parts[n & (NODE_TEXT_PARTS - 1)];
}

/* Adds the next string, or replaces it by its parts. */
__noinline int text__step(struct node_state *state, const struct node_proc_rec *proc)
{
	__u32 n, representation;
	__u64 string, part = 0;
	int type;

	if (!state || !proc)
		return -1;
	n = state->n_parts - 1;
	if (n > NODE_TEXT_PARTS - 2)
		return -1;
	string = *part__at(state, n);
	type = object__type(proc, string);
	if (type < 0 || type >= proc->text.first_nonstring)
		return -1;
	representation = type & proc->text.representation_mask;
	state->n_parts = n;
	if (!representation)
		return text__add_flat(state, proc, string, !(type & proc->text.one_byte));
	if (representation == proc->text.thin) {
		if (node__read(&part, sizeof(part), string - NODE_TAG + proc->text.thin_actual))
			return -1;
		state->n_parts = n + 1;
		*part__at(state, n) = part;
		return 0;
	}
	if (representation != proc->text.cons ||
	    node__read(&part, sizeof(part), string - NODE_TAG + proc->text.cons_second))
		return -1;
	*part__at(state, n) = part;
	if (node__read(&part, sizeof(part), string - NODE_TAG + proc->text.cons_first))
		return -1;
	*part__at(state, n + 1) = part;
	state->n_parts = n + 2; /* the first part is next */
	return 0;
}

/* Adds the length of a string and its first characters to state->key.function.texts. The program
 * may at any time make a string of several parts flat, which must not change the hash. So the hash
 * contains no address, and nothing of the string's structure. Returns 1 if the string is not
 * empty. */
__noinline int text__add(struct node_state *state, const struct node_proc_rec *proc, __u64 string)
{
	__u64 *hash;
	__u32 length = 0;
	int type, i;

	if (!state || !proc)
		return 0;
	hash = &state->key.function.texts;
	type = object__type(proc, string);
	if (type < 0 || type >= proc->text.first_nonstring ||
	    node__read(&length, sizeof(length), string - NODE_TAG + proc->text.string_length))
		return 0;
	*hash = node_hash__add(*hash, length);
	state->text_left = NODE_TEXT_CHARS;
	state->parts[0] = string;
	state->n_parts = 1;
	for (i = 0; i < NODE_TEXT_STEPS; i++)
		if (!state->n_parts || !state->text_left || text__step(state, proc))
			break;
	return length != 0;
}

/* Adds the word number @i of the ScopeInfo like text__add(), if it is a string. */
static __always_inline int text__add_of_scope(struct node_state *state,
					      const struct node_proc_rec *proc, __u64 scope,
					      __u64 i)
{
	__u64 word = 0;

	return !node__read(&word, sizeof(word), scope - NODE_TAG + 8 + 8 * i) &&
	       text__add(state, proc, word);
}

/* Adds the function name that the ScopeInfo contains. */
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
		text__add(state, proc, id->name);
	if (id->script_id &&
	    !node__read(&name, sizeof(name), id->script - NODE_TAG + proc->text.script_name))
		text__add(state, proc, name);
	return 0;
}

#endif
