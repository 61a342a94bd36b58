/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_NODE_CODE_BPF_H
#define BRAID_NODE_CODE_BPF_H

/* Finds the code of V8's compilers that contains an address. A function's own pointer to its code
 * is not sufficient. By now, the function may have other code than the code that runs. Code that
 * was entered in the middle of a loop is not the code of any function. So the beginning is searched
 * backwards. An object with instructions begins with the Map of such objects, and leads to its
 * Code, which contains their size. */

#include "bpf/node_state.bpf.h"

#define BLOCK_STEP  (NODE_BLOCK_WORDS * 8)
#define BLOCK_CODES (BLOCK_STEP / NODE_CODE_ALIGNMENT) /* possible beginnings in a block */
#define BLOCKS_MAX  1024			       /* half a megabyte */

/* Returns 1 if @map is the Map of objects of @type. @known: that Map, once it is found. */
static __always_inline int map__is(const struct node_proc_rec *proc, __u64 map, __u16 type,
				   __u64 *known)
{
	__u16 its_type = 0, map_type = 0;
	__u64 map_map = 0;

	if (*known)
		return map == *known;
	if ((map & NODE_TAG_MASK) != NODE_TAG ||
	    node__read(&its_type, sizeof(its_type), map - NODE_TAG + proc->map_type) ||
	    its_type != type || node__read(&map_map, sizeof(map_map), map - NODE_TAG) ||
	    (map_map & NODE_TAG_MASK) != NODE_TAG ||
	    node__read(&map_type, sizeof(map_type), map_map - NODE_TAG + proc->map_type) ||
	    map_type != proc->type_map)
		return 0;
	*known = map;
	return 1;
}

static __always_inline __u64 code__word(const struct node_state *state, __u32 offset)
{
	return offset <= NODE_CODE_BYTES - 8 ? *(__u64 *)((char *)state->code + offset) : 0;
}

static __always_inline __u32 code__u32(const struct node_state *state, __u32 offset)
{
	return offset <= NODE_CODE_BYTES - 4 ? *(__u32 *)((char *)state->code + offset) : 0;
}

/* Results of code__look(); negative: no code. */
enum { CODE_HOLDS, CODE_ENDS_BEFORE };

/* Checks whether code begins at @start and holds @pc. The code is then in state->code and
 * state->key. */
__noinline int code__look(struct node_state *state, const struct node_proc_rec *proc, __u64 start,
			  __u64 pc)
{
	__u64 words[2], stream, code;

	if (!state || !proc)
		return -1;
	stream = start - proc->stream_header;
	if (node__read(words, sizeof(words), stream) ||
	    !map__is(proc, words[0], proc->type_stream, &state->maps.stream))
		return -1;
	code = proc->stream_code ? words[1] : stream + NODE_TAG;
	if ((code & NODE_TAG_MASK) != NODE_TAG ||
	    node__read(state->code, sizeof(state->code), code - NODE_TAG))
		return -1;
	if (proc->code_start && code__word(state, proc->code_start) != start)
		return -1;
	state->key.code = code;
	state->key.deopt = code__word(state, proc->code_deopt);
	state->key.start = start;
	state->key.size = code__u32(state, proc->code_size);
	return pc - start < state->key.size ? CODE_HOLDS : CODE_ENDS_BEFORE;
}

struct code_search {
	struct node_state *state;
	const struct node_proc_rec *proc;
	__u64 pc;
	__u64 at; /* address of the word for a Map, for the last beginning in a block */
	__u64 found;
};

/* Reads the block in which @at is the address of the last word where code may begin. Memory before
 * the first code of a page may be unreadable. Then the block is read word by word. Returns 1 if all
 * of it is readable. */
__noinline int block__read(struct node_state *state, __u64 at)
{
	int i, all = 1;

	if (!state)
		return 0;
	if (!node__read(state->block, BLOCK_STEP - NODE_CODE_ALIGNMENT + 8,
			at - BLOCK_STEP + NODE_CODE_ALIGNMENT))
		return 1;
	for (i = 0; i < BLOCK_CODES; i++) {
		__u64 *word = &state->block[i * NODE_CODE_ALIGNMENT / 8];

		if (node__read(word, sizeof(*word),
			       at - (BLOCK_CODES - 1 - i) * NODE_CODE_ALIGNMENT))
			*word = all = 0;
	}
	return all;
}

/* Checks the places in one block where code may begin, from the last one on. */
static long code__search_block(__u32 index, void *ctx)
{
	struct code_search *search = ctx;
	struct node_state *state = search->state;
	__u64 word, at = search->at - (__u64)index * BLOCK_STEP;
	int i, found, all = block__read(state, at);

	for (i = BLOCK_CODES - 1; i >= 0; i--) {
		word = state->block[i * NODE_CODE_ALIGNMENT / 8];
		if (state->maps.stream ? word != state->maps.stream
				       : (word & NODE_TAG_MASK) != NODE_TAG)
			continue;
		at = search->at - (__u64)index * BLOCK_STEP -
		     (BLOCK_CODES - 1 - i) * NODE_CODE_ALIGNMENT + search->proc->stream_header;
		found = code__look(state, search->proc, at, search->pc);
		if (found < 0)
			continue;
		search->found = found == CODE_HOLDS ? at : 0;
		return 1;
	}
	return !all;
}

static __always_inline struct node_place *place__at(struct node_state *state, __u64 pc)
{
	__u64 hash = pc * 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio */

	return &state->places[hash >> (64 - NODE_PLACES_LOG2)];
}

/* Finds the code that holds @pc. Returns 1 if it is in state->code and state->key. */
__noinline int code__find(struct node_state *state, const struct node_proc_rec *proc, __u64 pc)
{
	struct code_search search = { .state = state, .proc = proc, .pc = pc };
	struct node_place *place;

	if (!state || !proc)
		return 0;
	place = place__at(state, pc);
	if (place->pc == pc && place->space == state->space &&
	    state->time_ns - place->checked_ns < NOTE_RECHECK_NS &&
	    (!place->start || code__look(state, proc, place->start, pc) == CODE_HOLDS))
		return place->start != 0;
	search.at = (pc & ~(NODE_CODE_ALIGNMENT - 1ULL)) - proc->stream_header;
	bpf_loop(BLOCKS_MAX, code__search_block, &search, 0);
	place->pc = pc;
	place->start = search.found;
	place->space = state->space;
	place->checked_ns = state->time_ns;
	return search.found != 0;
}

#endif
