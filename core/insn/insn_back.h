/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_INSN_BACK_H
#define BRAID_INSN_BACK_H

#include "core/insn/insn_ranges.h"
#include "core/insn/insn_state.h"
#include "core/insn/insn_steps.h"

/* Frames that the returns of functions prove. At a return the CFA is 8 above the stack pointer, and
 * rbp and rbx are the caller's. From there the code is followed backwards, over edges that are
 * certain. So such a frame needs no start of a function, and no assumption about the path to the
 * instruction. */

enum { INSN_BACK_NONE, INSN_BACK_FOUND, INSN_BACK_CONFLICT }; /* struct insn_back's @seen */

/* The frame before an instruction: CFA = reg + off, or, with @deref, *(reg + at) + off. */
struct insn_back {
	uint8_t seen;
	uint8_t reg; /* DWARF number */
	bool deref;
	bool returns; /* the code reaches a return of its own, not only one of another function */
	int32_t off, at;
	int32_t rbp_at, rbx_at; /* as in struct insn_state */
};

enum insn_fit { INSN_FIT_UNKNOWN, INSN_FITS, INSN_CONTRADICTS };

/* Finds the frames of all steps. *@ret is an array that the caller frees. @file and @ranges are
 * those of the steps. Returns 0, -ENOMEM, -EFBIG or -EINTR. */
int insn_back__find(const struct elf_file *file, const struct insn_ranges *ranges,
		    const struct insn_steps *steps, struct insn_back **ret);

/* Compares the state from the function's start with the frame that the returns prove. */
enum insn_fit insn_back__compare(const struct insn_back *back, const struct insn_state *state);

/* Returns true if both agree on the places of the caller's rbp and rbx. */
bool insn_back__same_registers(const struct insn_back *back, const struct insn_state *state);

/* Returns true if the function at @function is part of the code and proven to return. */
bool insn_back__returns(const struct insn_back *list, const struct insn_steps *steps,
			uint64_t function);

/* Sets *@ret to the state of the function's frame that follows from @back. Returns false if no
 * state follows. */
bool insn_back__state(const struct insn_back *back, struct insn_state *ret);

/* Returns the rule of a frame; UNWIND_NONE: not proven. */
struct unwind_rule insn_back__rule(const struct insn_back *back);

#endif
