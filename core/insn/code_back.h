/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_BACK_H
#define BRAID_CODE_BACK_H

#include "core/insn/code_ranges.h"
#include "core/insn/code_state.h"
#include "core/insn/code_steps.h"

/* Frames as the returns of functions prove them. At a return the CFA is 8 above the stack pointer,
 * and rbp and rbx are the caller's. From there the code is followed backwards, over edges that are
 * certain. So a frame that is found needs no start of a function: nothing is assumed about how the
 * instruction was reached. */

enum { CODE_BACK_NONE, CODE_BACK_KNOWN, CODE_BACK_CONFLICT }; /* struct code_back's `seen` */

/* In front of an instruction: CFA = reg + off, or, with `deref`, *(reg + at) + off. */
struct code_back {
	uint8_t seen;
	uint8_t reg; /* DWARF's number */
	bool deref;
	bool returns; /* a return of the code itself is reached, not only another function */
	int32_t off, at;
	int32_t rbp_at, rbx_at; /* as struct code_state has them */
};

enum code_fit { CODE_FIT_UNKNOWN, CODE_FITS, CODE_CONTRADICTS };

/* The frames of all steps, an array that the caller frees. @file and @ranges are those of the
 * steps. 0, -ENOMEM, -EFBIG or -EINTR. */
int code_back__find(const struct elf_file *file, const struct code_ranges *ranges,
		    const struct code_steps *steps, struct code_back **ret);

/* Does the state that was found from the function's start agree with what the returns prove? */
enum code_fit code_back__compare(const struct code_back *back, const struct code_state *state);

/* Do both agree on where the caller's rbp and rbx are? */
bool code_back__same_registers(const struct code_back *back, const struct code_state *state);

/* Is the function at @function part of the code, and proven to return? */
bool code_back__returns(const struct code_back *list, const struct code_steps *steps,
			uint64_t function);

/* Returns true if the state of the function's frame follows from @back, and sets @ret to it. */
bool code_back__state(const struct code_back *back, struct code_state *ret);

/* UNWIND_NONE: nothing is proven. */
struct unwind_rule code_back__rule(const struct code_back *back);

#endif
