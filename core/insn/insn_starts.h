/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_INSN_STARTS_H
#define BRAID_INSN_STARTS_H

#include "core/insn/insn_ranges.h"

/* Starts of functions and targets of jumps in code without frame descriptions, from the rest of the
 * file. The rest is not disassembled. Its bytes are searched for calls and jumps by their opcodes
 * and distances, so that some of the results are no instructions. */

enum { INSN_START_NAMED = 1, INSN_START_CALLED = 2, INSN_START_JUMPED = 4 };

struct code_start {
	uint64_t vaddr; /* link-time address in a range */
	uint64_t how;	/* one or more of INSN_START_* */
	uint64_t site;	/* address of bytes outside the ranges that resemble a call; 0: none */
};

struct insn_starts {
	struct code_start *list; /* owned; ascending */
	size_t n, cap;
};

/* Finds the starts in @ranges. Returns 0, -ENOMEM, -EFBIG or -EINTR. */
int insn_starts__find(const struct elf_file *file, const struct insn_ranges *ranges,
		      struct insn_starts *ret);

/* Returns true if the call at start->site is an instruction of a function that has a frame
 * description. Disassembles the bytes before it. */
bool insn_starts__is_called(const struct elf_file *file, const struct insn_ranges *ranges,
			    const struct code_start *start);
void insn_starts__done(struct insn_starts *starts); /* idempotent */

#endif
