/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_UNWIND_COPY_H
#define BRAID_UNWIND_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind_rule.h"
#include "core/elf/elf_file.h"

/* Unwinds a copy of registers and stack with libunwind's remote interface: slow, and an oracle
 * that shares no code with the unwinder in the kernel half. */
struct unwind_copy;

struct unwind_copy_input {
	uint64_t regs[UNWIND_REGS]; /* DWARF numbers; 16 is the pc */
	uint64_t stack_start;	    /* address of stack[0]; see below */
	const void *stack;
	size_t stack_size;
};

/* The copy should start 128 bytes below the rsp (the red zone): in a function's epilogue the call
 * frame information points at saved registers that are already popped. */

struct unwind_copy_frame {
	uint64_t ip;
	bool exact;    /* ip is no return address: interrupted there, or a signal trampoline */
	bool inferred; /* the frame inside was left by rbp, without call frame information */
	uint64_t cfa;  /* 0 for the outermost frame, where libunwind does not tell */
};

/* Where an image is mapped, and which of its code libunwind cannot leave: a runtime has rules for
 * it, and call frame information leaves out where that code goes on on another stack. */
struct unwind_copy_place {
	uint64_t bias;		     /* address - bias = link-time address */
	uint64_t own_start, own_end; /* link-time addresses of such code; equal: none */
};

/* The image that is mapped at `ip`, or NULL (JIT code, nothing mapped). `ret` is zeroed. The image
 * must stay open as long as the unwind_copy lives. */
typedef const struct elf_file *(*unwind_copy_find_fn)(void *ctx, uint64_t ip,
						      struct unwind_copy_place *ret);

int unwind_copy__new(unwind_copy_find_fn find, void *ctx, struct unwind_copy **ret);
void unwind_copy__free(struct unwind_copy *copy); /* NULL is fine */

/* Must be called after the target's mappings changed: asks `find` again for every image. */
void unwind_copy__flush(struct unwind_copy *copy);

/* Frames innermost first. Returns their number (at least 1, at most `max`); `ret_complete` tells
 * that call frame information ends the stack, by a return address that is undefined. It is false if
 * the copy ended, a step failed, or a return address is 0. -ENOMEM.
 * Code without an image (JIT code) is left as if it kept a frame pointer in rbp, which is inferred:
 * the stack is not complete then. If rbp does not point into the copy, at or above the rsp, that
 * frame is the last one. So is one in an image that does not describe it, or in code that a
 * runtime has rules for. */
int unwind_copy__run(struct unwind_copy *copy, const struct unwind_copy_input *input,
		     struct unwind_copy_frame *ret_frames, size_t max, bool *ret_complete);

#endif
