// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/python/python_frames.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

/* Include/frameobject.h, from 3.10 on Include/cpython/frameobject.h (PyFrameObject), from 3.11 on
 * Include/internal/pycore_frame.h, from 3.14 on pycore_interpframe_structs.h (_PyInterpreterFrame);
 * Include/genobject.h, Include/cpython/genobject.h (PyCoroObject); Include/code.h,
 * Include/cpython/code.h (PyCodeObject); Include/funcobject.h, Include/cpython/funcobject.h
 * (PyFunctionObject), at each version. scripts/check-python-offsets compares. */
static const struct python_layout layouts[] = {
	{
		.minor = 6,
		.coroutine_frame = 16,
		.stack = 64,
		.stack_top = 72,
		.is_pointer = true,
		.locals = 376,
		.n_blocks = 128,
		.blocks = 136,
		.stack_size = 28,
		.function_code = 16,
	},
	{
		.minor = 7,
		.coroutine_frame = 16,
		.stack = 64,
		.stack_top = 72,
		.is_pointer = true,
		.locals = 360,
		.n_blocks = 112,
		.blocks = 120,
		.stack_size = 28,
		.function_code = 16,
	},
	{
		.minor = 8,
		.coroutine_frame = 16,
		.stack = 64,
		.stack_top = 72,
		.is_pointer = true,
		.locals = 360,
		.n_blocks = 112,
		.blocks = 120,
		.stack_size = 32,
		.function_code = 16,
	},
	{
		.minor = 9,
		.coroutine_frame = 16,
		.stack = 64,
		.stack_top = 72,
		.is_pointer = true,
		.locals = 360,
		.n_blocks = 112,
		.blocks = 120,
		.stack_size = 32,
		.function_code = 16,
	},
	{
		.minor = 10,
		.coroutine_frame = 16,
		.stack = 64,
		.stack_top = 80,
		.locals = 352,
		.n_blocks = 104,
		.blocks = 112,
		.stack_size = 32,
		.function_code = 48,
	},
	{
		.minor = 11,
		.coroutine_frame = 80,
		.stack = 72,
		.stack_top = 64,
		.stack_size = 68,
		.n_locals = 76,
		.exceptions = 40,
		.function_code = 48,
	},
	{
		.minor = 12,
		.coroutine_frame = 72,
		.stack = 72,
		.stack_top = 64,
		.stack_size = 64,
		.n_locals = 72,
		.exceptions = 40,
		.function_code = 48,
	},
	{
		.minor = 13,
		.coroutine_frame = 72,
		.stack = 72,
		.stack_top = 64,
		.stack_size = 64,
		.n_locals = 72,
		.exceptions = 40,
		.function_code = 48,
	},
	{
		.minor = 14,
		.coroutine_frame = 72,
		.stack = 80,
		.stack_top = 64,
		.is_pointer = true,
		.stack_size = 64,
		.n_locals = 72,
		.exceptions = 40,
		.function_code = 48,
	},
	{
		.minor = 15,
		.coroutine_frame = 72,
		.stack = 80,
		.stack_top = 64,
		.is_pointer = true,
		.stack_size = 64,
		.n_locals = 72,
		.exceptions = 40,
		.function_code = 48,
	},
};

const struct python_layout *python_layout__find(unsigned minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (layouts[i].minor == minor)
			return &layouts[i];
	return NULL;
}

#define WORD	   8
#define TAGS	   7ULL /* tag bits of a reference, 3.14 on: Include/internal/pycore_stackref.h */
#define VALUES_MAX 4096

/* Returns the additional bytes of the head of all objects in free-threaded builds. */
static unsigned longer_by(const struct python_reader *reader)
{
	return reader->version->offsets.object_bytes - 16;
}

static uint32_t half_at(struct python_reader *reader, uint64_t at)
{
	uint64_t word = python_reader__at(reader, at & ~7ULL);

	return at & 4 ? word >> 32 : word;
}

/* --- the blocks that a frame is in --- */

/* Up to 3.10: f_iblock of them in f_blockstack, each {int type, handler, level} (PyTryBlock). A
 * with's block is there when __enter__ has returned, and its level is above __exit__. */
#define BLOCK_BYTES 12
#define BLOCK_LEVEL 8
#define BLOCKS_MAX  20 /* CO_MAXBLOCKS */

static unsigned count_by_blocks(struct python_reader *reader, const struct python_layout *layout,
				uint64_t frame)
{
	uint32_t n = half_at(reader, frame + layout->n_blocks);

	return n && n <= BLOCKS_MAX ? half_at(reader, frame + layout->blocks +
							      (n - 1) * BLOCK_BYTES + BLOCK_LEVEL)
				    : 0;
}

#define BYTES_SIZE 16
#define BYTES_DATA 32
#define TABLE_MAX  65536

struct table {
	const uint8_t *at, *end;
};

/* Objects/exception_handling_notes.txt: six bits a byte, the first of them first; 64 says that more
 * follow, 128 that an entry begins. */
static uint32_t read_number(struct table *table)
{
	uint32_t value = 0;
	uint8_t byte;

	do {
		if (table->at >= table->end)
			return UINT32_MAX;
		byte = *table->at++;
		value = value << 6 | (byte & 63);
	} while (byte & 64);
	return value;
}

/* From 3.11 on: the entry that the instruction is in says how deep the stack is for its handler. */
static unsigned depth_at(struct table *table, uint64_t unit)
{
	uint32_t start, size, depth;

	while (table->at < table->end) {
		start = read_number(table);
		size = read_number(table);
		read_number(table); /* the handler */
		depth = read_number(table) >> 1;
		if (unit >= start && unit - start < size)
			return depth;
		if (start > unit) /* they are in order */
			break;
	}
	return 0;
}

/* Returns the start of the instructions that the frame executes, or 0 if it is unknown. In
 * free-threaded builds they may be a copy: Include/cpython/code.h (_PyCodeArray). */
static uint64_t instructions(struct python_reader *reader, uint64_t code, uint64_t copy)
{
	const struct python_offsets *offsets = &reader->version->offsets;
	uint64_t array;

	if (!copy)
		return code + offsets->code_bytecode;
	array = python_reader__at(reader, code + offsets->code_copies);
	return array && copy < python_reader__at(reader, array)
		       ? python_reader__at(reader, array + WORD + WORD * copy)
		       : 0;
}

static unsigned count_by_table(struct python_reader *reader, const struct python_layout *layout,
			       uint64_t code, uint64_t copy, uint64_t instr)
{
	uint64_t bytes = python_object__field(reader, code, layout->exceptions), size;
	uint64_t start = instructions(reader, code, copy);
	unsigned depth = 0;
	struct table table;
	uint8_t *text;

	size = bytes ? python_object__field(reader, bytes, BYTES_SIZE) : 0;
	if (!size || size > TABLE_MAX || !start || instr < start)
		return 0;
	text = malloc(size);
	if (text &&
	    python_reader__bytes(reader, bytes + BYTES_DATA + longer_by(reader), text, size)) {
		table = (struct table) { text, text + size };
		depth = depth_at(&table, (instr - start) / 2);
	}
	free(text);
	return depth;
}

/* --- frames --- */

struct head { /* the members of a frame that change while it runs */
	uint64_t code, previous, instr, owner, copy;
};

static bool read_head(struct python_reader *reader, uint64_t frame, struct head *ret)
{
	const struct python_offsets *offsets = &reader->version->offsets;
	uint64_t words[32];

	if (!frame || frame & 7 || offsets->frame_bytes > sizeof(words) ||
	    !python_reader__bytes(reader, frame, words, offsets->frame_bytes))
		return false;
	*ret = (struct head) { .code = words[offsets->frame_code / WORD] & ~TAGS,
			       .previous = words[offsets->frame_previous / WORD],
			       .instr = words[offsets->frame_instr / WORD],
			       .copy = offsets->frame_copy
					       ? words[offsets->frame_copy / WORD] >>
								 8 * (offsets->frame_copy % WORD) &
							 UINT32_MAX
					       : 0,
			       .owner = words[offsets->frame_owner / WORD] >>
						8 * (offsets->frame_owner % WORD) &
					0xff };
	return true;
}

static bool is_shim(const struct python_reader *reader, const struct head *head)
{
	return reader->version->offsets.chain >= PYTHON_CHAIN_CFRAME_SHIMS &&
	       head->owner >= PYTHON_OWNER_SHIM;
}

static bool fill_in(struct python_reader *reader, uint64_t at, const struct head *head,
		    struct python_frame *ret)
{
	const struct python_layout *layout = python_layout__find(reader->version->minor);
	struct head after;

	if (!layout || !python_object__is(reader, head->code, "code"))
		return false;
	*ret = (struct python_frame) { .at = at, .code = head->code };
	if (layout->blocks) {
		ret->locals = at + layout->locals;
		ret->stack = python_reader__at(reader, at + layout->stack);
		ret->n_live = count_by_blocks(reader, layout, at);
	} else {
		ret->locals = at + layout->stack;
		ret->stack = ret->locals + (uint64_t)half_at(reader, head->code + layout->n_locals +
									     longer_by(reader)) *
						   WORD;
		ret->n_live = count_by_table(reader, layout, head->code, head->copy, head->instr);
	}
	ret->n_max = min_of(half_at(reader, head->code + layout->stack_size + longer_by(reader)),
			    VALUES_MAX);
	return ret->n_live <= ret->n_max && read_head(reader, at, &after) &&
	       !memcmp(&after, head, sizeof(after));
}

#define SHIMS_MAX 4 /* that follow each other */

static bool find_frame(struct python_reader *reader, uint64_t at, struct python_frame *ret)
{
	struct head head;

	*ret = (struct python_frame) {};
	for (int i = 0; i < SHIMS_MAX && read_head(reader, at, &head); i++) {
		if (!is_shim(reader, &head))
			return fill_in(reader, at, &head, ret);
		at = head.previous;
	}
	return false;
}

bool python_frame__innermost(struct python_reader *reader, uint64_t tstate,
			     struct python_frame *ret)
{
	const struct python_offsets *offsets = &reader->version->offsets;
	uint64_t at = python_reader__at(reader, tstate + offsets->tstate_frame);

	if (at &&
	    (offsets->chain == PYTHON_CHAIN_CFRAMES || offsets->chain == PYTHON_CHAIN_CFRAME_SHIMS))
		at = python_reader__at(reader, at + offsets->cframe_current_frame);
	return find_frame(reader, at, ret);
}

bool python_frame__caller(struct python_reader *reader, struct python_frame *frame)
{
	struct head head;

	return read_head(reader, frame->at, &head) && find_frame(reader, head.previous, frame);
}

uint64_t python_frame__value(struct python_reader *reader, uint64_t slots, unsigned i)
{
	return python_reader__at(reader, slots + (uint64_t)i * WORD) & ~TAGS;
}

/* --- code --- */

bool python_code__is(struct python_reader *reader, uint64_t code, const char *name,
		     const char *qualified, const char *file_end)
{
	const struct python_offsets *offsets = &reader->version->offsets;
	const char *want = reader->version->minor < 11 ? name : qualified;
	uint64_t file;
	size_t len;
	char *path;
	bool is;

	if (!python_str__is(reader, python_reader__at(reader, code + offsets->code_name), want))
		return false;
	file = python_reader__at(reader, code + offsets->code_file);
	path = python_str__dup(reader, file);
	len = path ? strlen(path) : 0;
	is = len >= strlen(file_end) && !strcmp(path + len - strlen(file_end), file_end);
	free(path);
	return is;
}

/* --- threads --- */

#define INTERPRETERS_MAX 256
#define THREADS_MAX	 65536

void python_states__each(struct python_reader *reader, uint64_t interpreters,
			 python_state_fn on_state, void *ctx)
{
	const struct python_offsets *offsets = &reader->version->offsets;
	uint64_t interpreter = python_reader__at(reader, interpreters), at;

	for (int i = 0; i < INTERPRETERS_MAX && interpreter; i++) {
		at = python_reader__at(reader, interpreter + offsets->interp_threads);
		for (int k = 0; k < THREADS_MAX && at; k++) {
			if (!on_state(ctx, at,
				      python_reader__at(reader, at + offsets->tstate_thread_id)))
				return;
			at = python_reader__at(reader, at + PYTHON_TSTATE_NEXT);
		}
		interpreter = python_reader__at(reader, interpreter + offsets->interp_next);
	}
}
