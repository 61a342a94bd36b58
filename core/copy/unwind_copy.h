/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_UNWIND_COPY_H
#define BRAID_UNWIND_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind_rule.h"
#include "core/elf/elf_file.h"

/* Unwinds a copy of registers and stack with libunwind's remote interface. It is slow, and an
 * oracle that shares no code with the unwinder in the kernel half. */
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
	bool exact;    /* ip is no return address, but an interrupted instruction or a signal
			  trampoline */
	bool inferred; /* the inner frame was left by rbp, without call frame information */
	uint64_t cfa;  /* canonical frame address; 0: outermost frame, as libunwind does not report
			  its CFA */
};

/* The mapping of an image, and the range of its code that libunwind cannot leave. A runtime has
 * rules for that range; its call frame information does not cover the switch to another stack. */
struct unwind_copy_place {
	uint64_t bias;		     /* address - bias = link-time address */
	uint64_t own_start, own_end; /* link-time addresses of such code; equal: none */
};

/* Returns the image that is mapped at @ip, or NULL (JIT code, nothing mapped). *@ret is zeroed by
 * the caller. The image must stay open as long as the unwind_copy lives. */
typedef const struct elf_file *(*unwind_copy_find_fn)(void *ctx, uint64_t ip,
						      struct unwind_copy_place *ret);

int unwind_copy__new(unwind_copy_find_fn find, void *ctx, struct unwind_copy **ret);
void unwind_copy__free(struct unwind_copy *copy); /* NULL is fine */

/* Discards the mappings of all images, so that @find is called again. Must be called after the
 * target's mappings changed. */
void unwind_copy__flush(struct unwind_copy *copy);

/* Writes the frames, innermost first, to @ret_frames. Returns their number (at least 1, at most
 * @max), or -ENOMEM. *@ret_complete is true if call frame information ends the stack by an
 * undefined return address. It is false if the copy ended, a step failed, or a return address is 0.
 * Code without an image (JIT code) is left as if rbp were its frame pointer. Such a frame is
 * inferred, and the stack is not complete. The frame is the last one if rbp does not point into the
 * copy, at or above the rsp. It is also the last one in an image that does not describe it, or in
 * code that a runtime has rules for. */
int unwind_copy__run(struct unwind_copy *copy, const struct unwind_copy_input *input,
		     struct unwind_copy_frame *ret_frames, size_t max, bool *ret_complete);

#endif
