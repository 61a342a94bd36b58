/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DISASSEMBLY_H
#define BRAID_DISASSEMBLY_H

#include <stddef.h>
#include <stdint.h>

/* Machine code (x86-64) as text, by Capstone. The machine code is untrusted: any bytes give
 * instructions that cover them all. */

enum flow {
	FLOW_ON,     /* the next instruction is executed next, or after a call returns */
	FLOW_BRANCH, /* the next instruction or the target */
	FLOW_LEAVES, /* all others: a jump, a return, a trap, or bytes that are no instruction */
};

struct instruction {
	uint64_t address;
	size_t size;	 /* bytes */
	uint64_t target; /* target of a direct jump or call; 0: none */
	enum flow flow;
	const char *text; /* mnemonic and operands in AT&T syntax; ".byte 0xNN" for bytes that are
			     no instruction; borrowed during the call */
};

/* Calls @take with each instruction, in order, until it returns a value other than 0, and returns
 * that value. Returns 0 at the end, or -ENOMEM. @address is that of the first byte. */
int disassembly__run(const void *code, size_t size, uint64_t address,
		     int (*take)(void *ctx, const struct instruction *instruction), void *ctx);

#endif
