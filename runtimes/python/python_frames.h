/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_FRAMES_H
#define BRAID_PYTHON_FRAMES_H

#include "runtimes/python/python_objects.h"

/* The value stacks of Python frames, read from another process. CPython 3.6 to 3.15. */

/* Offsets in a minor version, in bytes; 0: the version has no such member. */
struct python_layout {
	unsigned minor;
	uint16_t coroutine_frame; /* in a coroutine; until 3.10 a pointer */
	/* in a frame */
	uint16_t
		stack; /* until 3.10 a pointer to its values; later the locals, before the values */
	uint16_t stack_top; /* number of values, or ... */
	bool is_pointer;    /* ... a pointer behind the last one, while it does not run */
	uint16_t locals;    /* until 3.10 */
	uint16_t n_blocks, blocks;
	/* in a code object */
	uint16_t stack_size, n_locals, exceptions;
	/* in a function */
	uint16_t function_code;
};

const struct python_layout *python_layout__find(unsigned minor); /* NULL: unknown */

struct python_frame {
	uint64_t at;   /* 0: there is none */
	uint64_t code; /* PyCodeObject */
	uint64_t locals, stack;
	/* Number of values that are certainly on the stack: those that are there when one of the
	 * blocks (`with`, `try`) ends in which the frame is. */
	unsigned n_live;
	unsigned n_max; /* slots of the stack */
};

/* The innermost frame of a PyThreadState, and the one that has called it. False: no more, or not
 * readable; the frame changed while it was read. */
bool python_frame__innermost(struct python_reader *reader, uint64_t tstate,
			     struct python_frame *ret);
bool python_frame__caller(struct python_reader *reader, struct python_frame *frame);

/* An object in a slot; 0: none. */
uint64_t python_frame__value(struct python_reader *reader, uint64_t slots, unsigned i);

/* Is the function of that name (from 3.11 on the qualified one), and its file of such an end? */
bool python_code__is(struct python_reader *reader, uint64_t code, const char *name,
		     const char *qualified, const char *file_end);

/* All thread states of a process, until `on_state` returns false. */
typedef bool (*python_state_fn)(void *ctx, uint64_t tstate, uint64_t fs_base);
void python_states__each(struct python_reader *reader, uint64_t interpreters,
			 python_state_fn on_state, void *ctx);

#endif
