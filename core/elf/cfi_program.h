/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CFI_PROGRAM_H
#define BRAID_CFI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind_rule.h"
#include "core/arch/arch.h"
#include "core/elf/cfi_entries.h"

/* The interpreter of call frame instructions (DWARF 5, section 6.4.2). Of the columns of the
 * table that they describe it keeps those that an unwind_rule can hold. */

enum cfi_ra { /* the return address */
	      CFI_RA_ELSEWHERE,
	      CFI_RA_AT_CFA, /* at CFA-8, where a call puts it */
	      CFI_RA_UNDEFINED,
	      CFI_RA_IN_REGISTER,
};

struct cfi_state {
	struct unwind_rule rule; /* kind NONE: no CFA yet */
	uint64_t cfa_reg;	 /* as last defined, even where no rule can hold it */
	int64_t cfa_off;
	bool cfa_is_expression;
	uint8_t ra;	/* enum cfi_ra */
	uint8_t ra_reg; /* CFI_RA_IN_REGISTER: this */
	bool sp_moved;	/* the caller's stack pointer is not the CFA */
};

/* The program of one common entry, whose frame descriptions go on from its state. */
struct cfi_program {
	const struct arch *arch;   /* of the file */
	const struct cfi_cie *cie; /* borrowed */
	bool usable;		   /* the instructions of the entry itself could be run */
	struct cfi_state initial;
};

/* [start, end) follows `rule`. A negative return ends the run and is propagated. */
typedef int (*cfi_range_fn)(void *ctx, uint64_t start, uint64_t end,
			    const struct unwind_rule *rule);

/* Runs a common entry's own instructions. @arch is the machine of its file. Never fails: what
 * cannot be run is not usable. Where calls leave the return address in a register (arch->ra is
 * arch->aux), a rule's aux_words say where the return address was saved; UNWIND_WORDS_SAME: nowhere
 * yet. */
void cfi_program__prepare(struct cfi_program *ret, const struct cfi_cie *cie,
			  const struct arch *arch);

/* Runs the instructions of the frame description that covers [start, end): calls `range` with
 * adjacent, non-empty ranges in ascending order that fill it. From an instruction that is unknown
 * or malformed on, the rule is UNWIND_UNSUPPORTED. */
int cfi_program__run(const struct cfi_program *program, const uint8_t *code, size_t size,
		     uint64_t start, uint64_t end, cfi_range_fn range, void *ctx);

#endif
