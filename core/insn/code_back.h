/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_BACK_H
#define BRAID_CODE_BACK_H

#include "core/insn/code_ranges.h"
#include "core/insn/code_state.h"
#include "core/insn/code_steps.h"

/* Frames that the returns of functions prove. At a return the CFA is 8 above the stack pointer, and
 * rbp and rbx are the caller's. From there the code is followed backwards, over edges that are
 * certain. So such a frame needs no start of a function, and no assumption about the path to the
 * instruction. */

enum { CODE_BACK_NONE, CODE_BACK_FOUND, CODE_BACK_CONFLICT }; /* struct code_back's @seen */

/* The frame before an instruction: CFA = reg + off, or, with @deref, *(reg + at) + off. */
struct code_back {
	uint8_t seen;
	uint8_t reg; /* DWARF number */
	bool deref;
	bool returns; /* a return of the code itself is reached, not only another function */
	int32_t off, at;
	int32_t rbp_at, rbx_at; /* as in struct code_state */
};

enum code_fit { CODE_FIT_UNKNOWN, CODE_FITS, CODE_CONTRADICTS };

/* Finds the frames of all steps. *@ret is an array that the caller frees. @file and @ranges are
 * those of the steps. Returns 0, -ENOMEM, -EFBIG or -EINTR. */
int code_back__find(const struct elf_file *file, const struct code_ranges *ranges,
		    const struct code_steps *steps, struct code_back **ret);

/* Compares the state from the function's start with the frame that the returns prove. */
enum code_fit code_back__compare(const struct code_back *back, const struct code_state *state);

/* Returns true if both agree on the places of the caller's rbp and rbx. */
bool code_back__same_registers(const struct code_back *back, const struct code_state *state);

/* Returns true if the function at @function is part of the code and proven to return. */
bool code_back__returns(const struct code_back *list, const struct code_steps *steps,
			uint64_t function);

/* Sets *@ret to the state of the function's frame that follows from @back. Returns false if none
 * does. */
bool code_back__state(const struct code_back *back, struct code_state *ret);

/* Returns the rule of a frame; UNWIND_NONE: not proven. */
struct unwind_rule code_back__rule(const struct code_back *back);

#endif
