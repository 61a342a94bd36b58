/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DISASSEMBLY_H
#define BRAID_DISASSEMBLY_H

#include <stddef.h>
#include <stdint.h>

/* Machine code (x86-64) as text, by Capstone. The code is untrusted: any bytes give instructions
 * that cover them all. */

enum flow {
	FLOW_ON,     /* the next instruction comes next, at last: a call, too */
	FLOW_BRANCH, /* that, or the target */
	FLOW_LEAVES, /* anything else: a jump, a return, what traps, what is no instruction */
};

struct instruction {
	uint64_t address;
	size_t size;	 /* bytes */
	uint64_t target; /* of a jump or call that names it; 0: none */
	enum flow flow;
	const char *text; /* mnemonic and operands in AT&T syntax; ".byte 0xNN" for what is no
			   * instruction; borrowed during the call */
};

/* Calls `take` with each instruction, in order, until it returns other than 0, which is what this
 * returns then. Else 0, or -ENOMEM. `address`: of the first byte. */
int disassembly__run(const void *code, size_t size, uint64_t address,
		     int (*take)(void *ctx, const struct instruction *instruction), void *ctx);

#endif
