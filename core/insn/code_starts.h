/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_STARTS_H
#define BRAID_CODE_STARTS_H

#include "core/insn/code_ranges.h"

/* Starts of functions and targets of jumps in code that has no frame descriptions, as the rest of
 * the file tells them. The rest is not disassembled. Its bytes are searched for calls and jumps by
 * their opcodes and distances, so that some of what is found is no instruction. */

enum { CODE_START_NAMED = 1, CODE_START_CALLED = 2, CODE_START_JUMPED = 4 };

struct code_start {
	uint64_t vaddr; /* in a range */
	uint64_t how;	/* CODE_START_*, of which one or more */
	uint64_t site;	/* of bytes in front of the code or behind it that look like a call; 0: none
			 */
};

struct code_starts {
	struct code_start *list; /* owned; ascending */
	size_t n, cap;
};

/* 0, -ENOMEM, -EFBIG or -EINTR. */
int code_starts__find(const struct elf_file *file, const struct code_ranges *ranges,
		      struct code_starts *ret);

/* Is the call at start->site an instruction of a function that has a frame description? The bytes
 * in front of it are disassembled. */
bool code_starts__is_called(const struct elf_file *file, const struct code_ranges *ranges,
			    const struct code_start *start);
void code_starts__done(struct code_starts *starts); /* idempotent */

#endif
