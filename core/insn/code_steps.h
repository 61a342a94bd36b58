/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_STEPS_H
#define BRAID_CODE_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/elf/elf_file.h"

/* Machine code (x86-64) reduced to the data that unwinding needs: the effect of each instruction on
 * the stack pointer and on rbp, and its targets. */

enum code_op {
	CODE_OTHER,
	CODE_PUSH,	/* reg; value: bytes */
	CODE_POP,	/* reg; value: bytes */
	CODE_MOVE,	/* rsp += value */
	CODE_SAVE,	/* mov %rsp,%rbp */
	CODE_LOAD,	/* rsp = rbp + value */
	CODE_LOAD_FROM, /* rsp = reg + value, where reg is neither rsp nor rbp */
	CODE_LEAVE,
	CODE_LOSE,     /* rsp becomes unknown */
	CODE_LOSE_RBP, /* rbp becomes unknown */
	CODE_LOSE_RBX, /* rbx becomes unknown */
	CODE_ALIGN,    /* rsp is rounded down to a multiple */
	CODE_COPY,     /* reg = rsp + value */
	CODE_STORE,    /* *(rsp + value) = reg */
	CODE_FETCH,    /* reg = *(rsp + value); reg is rbp, rbx or rsp */
	CODE_ZERO_RBP, /* rbp = 0; meaningless in the middle of a function */
	CODE_CALL,
	CODE_JUMP,   /* to target */
	CODE_BRANCH, /* to target, or to the next instruction */
	CODE_TAIL,   /* to a function whose address is a word of data, as in stubs of a PLT */
	CODE_SWITCH, /* to a computed address; target: address of a table of addresses, 0: none */
	CODE_TABLE,  /* loads the address @target, which may be that of a table of distances */
	CODE_RETURN,
	CODE_STOP,   /* the next instruction is not executed */
	CODE_SIGNAL, /* part of `mov $15,%rax; syscall`, which ends a signal handler */
	CODE_PADDING,
	CODE_BOUND, /* compares with @value, or masks by it, as before a jump by a table */
};

struct code_step {
	uint64_t vaddr;
	uint64_t target; /* target of direct jumps and calls; 0: none */
	int32_t value;
	uint8_t op;  /* enum code_op */
	uint8_t reg; /* DWARF number; UNWIND_REGS: none */
	uint8_t size;
	uint16_t writes; /* registers that the step may write; bit n: DWARF number n */
	bool entry;	 /* a function starts here, by its symbol or because it is called */
	bool reached;	 /* a jump leads here, perhaps from code outside the steps */
	bool referred;	 /* a symbol or an instruction of the steps contains this address */
	bool unknown;	 /* no instruction; op: CODE_STOP */
	bool doubtful;	 /* bytes before are no instruction, so that this may not be one either */
	bool aimed;	 /* an undoubted jump or call leads here */
};

struct code_steps {
	struct code_step *list; /* owned; by address */
	size_t n, cap;
};

#define CODE_STEPS_MAX (1 << 20) /* steps of one file */

/* Appends the steps of [@start, @end), which must be after all earlier ranges. Returns 0, -ENOMEM,
 * a negative errno of quota__look(), or -E2BIG. */
int code_steps__read(struct code_steps *steps, const struct elf_file *file, uint64_t start,
		     uint64_t end);
void code_steps__done(struct code_steps *steps); /* idempotent */

/* Alignment of functions by compilers and assemblers; bytes. */
#define CODE_ALIGNMENT 16

/* Returns true if the next instruction in the file may be executed after @step. A call may not
 * return. */
bool code_step__goes_on(const struct code_step *step);

/* Returns the step that begins at @vaddr, or NULL. */
struct code_step *code_steps__at(const struct code_steps *steps, uint64_t vaddr);

#endif
