/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_STARTS_H
#define BRAID_CODE_STARTS_H

#include "core/insn/code_ranges.h"

/* Starts of functions and targets of jumps in code without frame descriptions, from the rest of the
 * file. The rest is not disassembled. Its bytes are searched for calls and jumps by their opcodes
 * and distances, so that some of the results are no instructions. */

enum { CODE_START_NAMED = 1, CODE_START_CALLED = 2, CODE_START_JUMPED = 4 };

struct code_start {
	uint64_t vaddr; /* link-time address in a range */
	uint64_t how;	/* one or more of CODE_START_* */
	uint64_t site;	/* address of bytes outside the ranges that resemble a call; 0: none */
};

struct code_starts {
	struct code_start *list; /* owned; ascending */
	size_t n, cap;
};

/* Finds the starts in @ranges. Returns 0, -ENOMEM, -EFBIG or -EINTR. */
int code_starts__find(const struct elf_file *file, const struct code_ranges *ranges,
		      struct code_starts *ret);

/* Returns true if the call at start->site is an instruction of a function that has a frame
 * description. Disassembles the bytes before it. */
bool code_starts__is_called(const struct elf_file *file, const struct code_ranges *ranges,
			    const struct code_start *start);
void code_starts__done(struct code_starts *starts); /* idempotent */

#endif
