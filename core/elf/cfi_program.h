/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CFI_PROGRAM_H
#define BRAID_CFI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind_rule.h"
#include "core/arch/arch.h"
#include "core/elf/cfi_entries.h"

/* The interpreter of call frame instructions (DWARF 5, section 6.4.2). It stores only those columns
 * of the table that an unwind_rule can represent. */

enum cfi_ra { /* place of the return address */
	      CFI_RA_ELSEWHERE,
	      CFI_RA_AT_CFA, /* at CFA-8, where a call stores it */
	      CFI_RA_UNDEFINED,
	      CFI_RA_IN_REGISTER,
};

struct cfi_state {
	struct unwind_rule rule; /* kind NONE: no CFA yet */
	uint64_t cfa_reg; /* register of the last definition, even if no rule can represent it */
	int64_t cfa_off;
	bool cfa_is_expression;
	uint8_t ra;	/* enum cfi_ra */
	uint8_t ra_reg; /* DWARF number of the register, for CFI_RA_IN_REGISTER */
	bool sp_moved;	/* the caller's stack pointer is not the CFA */
};

/* The program of one common entry, from whose final state its frame descriptions start. */
struct cfi_program {
	const struct arch *arch;   /* machine of the file */
	const struct cfi_cie *cie; /* borrowed */
	bool usable;		   /* the entry's own instructions are supported */
	struct cfi_state initial;
};

/* Receives a range: @rule applies to [@start, @end). A negative return value ends the run and is
 * propagated. */
typedef int (*cfi_range_fn)(void *ctx, uint64_t start, uint64_t end,
			    const struct unwind_rule *rule);

/* Runs a common entry's own instructions. @arch is the machine of its file. Never fails: sets
 * @ret->usable to false if an instruction is not supported. Where calls leave the return address in
 * a register (arch->ra is arch->aux), a rule's aux_words are the place of the return address;
 * UNWIND_WORDS_SAME: not saved yet. */
void cfi_program__prepare(struct cfi_program *ret, const struct cfi_cie *cie,
			  const struct arch *arch);

/* Runs the instructions of the frame description that covers [@start, @end). Calls @range with
 * adjacent, non-empty ranges in ascending order that fill it. The rule is UNWIND_UNSUPPORTED from
 * an instruction on that is unknown or malformed. */
int cfi_program__run(const struct cfi_program *program, const uint8_t *code, size_t size,
		     uint64_t start, uint64_t end, cfi_range_fn range, void *ctx);

#endif
