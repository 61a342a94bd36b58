/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_STEPS_H
#define BRAID_CODE_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/elf/elf_file.h"

/* Machine code (x86-64) as far as it matters to who wants to leave its functions: what each
 * instruction does to the stack pointer and to rbp, and where it leads. */

enum code_op {
	CODE_OTHER,
	CODE_PUSH,	/* reg; value: bytes */
	CODE_POP,	/* the same */
	CODE_MOVE,	/* rsp += value */
	CODE_SAVE,	/* mov %rsp,%rbp */
	CODE_LOAD,	/* rsp = rbp + value */
	CODE_LOAD_FROM, /* rsp = reg + value, where reg is neither rsp nor rbp */
	CODE_LEAVE,
	CODE_LOSE,     /* rsp becomes something else */
	CODE_LOSE_RBP, /* so does rbp */
	CODE_LOSE_RBX, /* and rbx */
	CODE_ALIGN,    /* rsp becomes less, to be a multiple */
	CODE_COPY,     /* reg = rsp + value */
	CODE_STORE,    /* reg goes to rsp + value */
	CODE_FETCH,    /* rbp, rbx or rsp (reg) becomes what is there */
	CODE_ZERO_RBP, /* it becomes 0, which in no function's middle means anything */
	CODE_CALL,
	CODE_JUMP,   /* target */
	CODE_BRANCH, /* the same, or on */
	CODE_TAIL,   /* to a function whose address a word of data has, as stubs of a PLT */
	CODE_SWITCH, /* to an address that the code works out; target: of a table of addresses */
	CODE_TABLE,  /* loads the address `target`, which may be that of a table of distances */
	CODE_RETURN,
	CODE_STOP,   /* it does not go on */
	CODE_SIGNAL, /* of `mov $15,%rax; syscall`, which leaves a signal handler */
	CODE_PADDING,
	CODE_BOUND, /* compares with `value`, or masks by it, as in front of a table's jump */
};

struct code_step {
	uint64_t vaddr;
	uint64_t target; /* of jumps and calls that name it; 0: none */
	int32_t value;
	uint8_t op;  /* enum code_op */
	uint8_t reg; /* DWARF's number; UNWIND_REGS: none */
	uint8_t size;
	uint16_t writes; /* registers that may get another value, a bit each by DWARF's number */
	bool entry;	 /* a function starts here, by its symbol or because it is called */
	bool reached;	 /* a jump leads here, maybe from code that is no part of the steps */
	bool referred;	 /* a symbol or an instruction of the steps has its address */
	bool unknown;	 /* no instruction; op: CODE_STOP */
	bool doubtful;	 /* bytes in front are no instruction, so that this may be none either */
	bool aimed;	 /* a jump or call of an instruction without doubt leads here */
};

struct code_steps {
	struct code_step *list; /* owned; by address */
	size_t n, cap;
};

#define CODE_STEPS_MAX (1 << 20) /* of one file */

/* Appends those of a range, which lies behind all before. 0, -ENOMEM, or -E2BIG. */
int code_steps__read(struct code_steps *steps, const struct elf_file *file, uint64_t start,
		     uint64_t end);
void code_steps__done(struct code_steps *steps); /* idempotent */

/* Compilers and assemblers align functions to it. */
#define CODE_ALIGNMENT 16

/* Does the instruction behind @step in the file follow it in time? A call may not return. */
bool code_step__goes_on(const struct code_step *step);

/* The one that begins there; NULL: none does. */
struct code_step *code_steps__at(const struct code_steps *steps, uint64_t vaddr);

#endif
