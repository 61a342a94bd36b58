/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_FRAMES_H
#define BRAID_PYTHON_FRAMES_H

#include "runtimes/python/python_objects.h"

/* What Python frames have on their stacks of values, from outside. CPython 3.6 to 3.15. */

/* Where a minor version has these, in bytes; what that version has not is 0. */
struct python_layout {
	unsigned minor;
	uint16_t coroutine_frame; /* of a coroutine; until 3.10 a pointer */
	/* of a frame */
	uint16_t stack; /* until 3.10 a pointer to its values; later its locals, which these follow
			 */
	uint16_t stack_top; /* how many values there are, or ... */
	bool is_pointer;    /* ... a pointer behind the last one, while it does not run */
	uint16_t locals;    /* until 3.10 */
	uint16_t n_blocks, blocks;
	/* of a code object */
	uint16_t stack_size, n_locals, exceptions;
	/* of a function */
	uint16_t function_code;
};

const struct python_layout *python_layout__find(unsigned minor); /* NULL: not known */

struct python_frame {
	uint64_t at;   /* 0: there is none */
	uint64_t code; /* PyCodeObject */
	uint64_t locals, stack;
	/* What is on the stack beyond doubt: all that is there when one of the blocks (`with`,
	 * `try`) ends that the frame is in. */
	unsigned n_live;
	unsigned n_max; /* slots that the stack has */
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
