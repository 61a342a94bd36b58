/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_INSN_STEPS_H
#define BRAID_INSN_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/elf/elf_file.h"

/* Machine code (x86-64) reduced to the data that unwinding needs: the effect of each instruction on
 * the stack pointer and on rbp, and its targets. */

enum insn_op {
	INSN_OTHER,
	INSN_PUSH,	/* reg; value: bytes */
	INSN_POP,	/* reg; value: bytes */
	INSN_MOVE,	/* rsp += value */
	INSN_SAVE,	/* mov %rsp,%rbp */
	INSN_LOAD,	/* rsp = rbp + value */
	INSN_LOAD_FROM, /* rsp = reg + value, where reg is neither rsp nor rbp */
	INSN_LEAVE,
	INSN_LOSE,     /* rsp becomes unknown */
	INSN_LOSE_RBP, /* rbp becomes unknown */
	INSN_LOSE_RBX, /* rbx becomes unknown */
	INSN_ALIGN,    /* rsp is rounded down to a multiple */
	INSN_COPY,     /* reg = rsp + value */
	INSN_STORE,    /* *(rsp + value) = reg */
	INSN_FETCH,    /* reg = *(rsp + value); reg is rbp, rbx or rsp */
	INSN_ZERO_RBP, /* rbp = 0; meaningless in the middle of a function */
	INSN_CALL,
	INSN_JUMP,   /* to target */
	INSN_BRANCH, /* to target, or to the next instruction */
	INSN_TAIL,   /* to a function whose address is a word of data, as in stubs of a PLT */
	INSN_SWITCH, /* to a computed address; target: address of a table of addresses, 0: none */
	INSN_TABLE,  /* loads the address @target, which may be that of a table of distances */
	INSN_RETURN,
	INSN_STOP,   /* the next instruction is not executed */
	INSN_SIGNAL, /* part of `mov $15,%rax; syscall`, which ends a signal handler */
	INSN_PADDING,
	INSN_BOUND, /* compares with @value, or masks by it, as before a jump by a table */
};

struct insn_step {
	uint64_t vaddr;
	uint64_t target; /* target of direct jumps and calls; 0: none */
	int32_t value;
	uint8_t op;  /* enum insn_op */
	uint8_t reg; /* DWARF number; UNWIND_REGS: none */
	uint8_t size;
	uint16_t writes; /* registers that the step may write; bit n: DWARF number n */
	bool entry;	 /* a function starts here, by its symbol or because it is called */
	bool reached;	 /* a jump leads here, perhaps from code outside the steps */
	bool referred;	 /* a symbol or an instruction of the steps contains this address */
	bool unknown;	 /* no instruction; op: INSN_STOP */
	bool doubtful;	 /* bytes before are no instruction, so that this may not be one either */
	bool aimed;	 /* a jump or call in code that is not doubtful leads here */
};

struct insn_steps {
	struct insn_step *list; /* owned; by address */
	size_t n, cap;
};

#define INSN_STEPS_MAX (1 << 20) /* steps of one file */

/* Appends the steps of [@start, @end), which must be after all earlier ranges. Returns 0, -ENOMEM,
 * a negative errno of quota__look(), or -E2BIG. */
int insn_steps__read(struct insn_steps *steps, const struct elf_file *file, uint64_t start,
		     uint64_t end);
void insn_steps__done(struct insn_steps *steps); /* idempotent */

/* Alignment of functions by compilers and assemblers; bytes. */
#define INSN_ALIGNMENT 16

/* Returns true if the next instruction in the file may be executed after @step. A call may not
 * return. */
bool insn_step__goes_on(const struct insn_step *step);

/* Returns the step that begins at @vaddr, or NULL. */
struct insn_step *insn_steps__at(const struct insn_steps *steps, uint64_t vaddr);

#endif
