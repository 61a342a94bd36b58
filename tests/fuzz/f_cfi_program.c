// SPDX-License-Identifier: GPL-2.0-or-later
#include <dwarf.h>
#include <stdlib.h>

#include "core/elf/cfi_program.h"
#include "tests/fuzz/fuzz.h"

#define START 0x1000
#define END   0x1100

struct seen {
	uint64_t end;
	size_t saved; /* rules that have the place of rbp */
};

static int add_range(void *ctx, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
	struct seen *seen = ctx;

	if (start != seen->end || end <= start)
		abort(); /* ranges are adjacent and not empty */
	seen->end = end;
	seen->saved += rule->kind == UNWIND_REG && rule->fp_words == -2;
	return 0;
}

/* Runs the instructions of a common entry and of a frame description. The first byte is the size of
 * the entry's instructions, the second the encoding of addresses. */
bool target__run(const uint8_t *data, size_t size)
{
	struct cfi_cie cie = { .code_align = 1, .data_align = -8, .ra_reg = UNWIND_REG_PC };
	struct cfi_program program;
	struct seen seen = { .end = START };
	size_t common;

	if (size < 2)
		return false;
	common = data[0] < size - 2 ? data[0] : size - 2;
	cie.encoding = data[1];
	data += 2;
	cie.code = data;
	cie.code_size = common;
	cfi_program__prepare(&program, &cie, &arch_x86_64);
	if (cfi_program__run(&program, data + common, size - 2 - common, START, END, add_range,
			     &seen) != 0 ||
	    seen.end != END)
		abort(); /* any instructions fill the range */
	return seen.saved > 0;
}

void target__seeds(void)
{
	static const uint8_t frame_pointer[] = {
		5,
		DW_EH_PE_absptr, /* common start of all functions: */
		DW_CFA_def_cfa,
		7,
		8,
		DW_CFA_offset | UNWIND_REG_PC,
		1, /* then push, mov, leave: */
		DW_CFA_advance_loc | 1,
		DW_CFA_def_cfa_offset,
		16,
		DW_CFA_offset | 6,
		2,
		DW_CFA_advance_loc | 3,
		DW_CFA_def_cfa_register,
		6,
		DW_CFA_remember_state,
		DW_CFA_advance_loc1,
		32,
		DW_CFA_def_cfa,
		7,
		8,
		DW_CFA_restore | 6,
		DW_CFA_advance_loc | 1,
		DW_CFA_restore_state
	};
	static const uint8_t expressions[] = {
		5,
		DW_EH_PE_pcrel | DW_EH_PE_sdata4,
		DW_CFA_def_cfa,
		7,
		8,
		DW_CFA_offset | UNWIND_REG_PC,
		1, /* saved rbp, then a realigned stack, then a PLT */
		DW_CFA_offset | 6,
		2,
		DW_CFA_advance_loc | 1,
		DW_CFA_def_cfa_expression,
		3,
		DW_OP_breg6,
		0x78,
		DW_OP_deref,
		DW_CFA_advance_loc2,
		4,
		0,
		DW_CFA_def_cfa_expression,
		11,
		DW_OP_breg7,
		8,
		DW_OP_breg16,
		0,
		DW_OP_lit15,
		DW_OP_and,
		DW_OP_lit11,
		DW_OP_ge,
		DW_OP_lit3,
		DW_OP_shl,
		DW_OP_plus,
		DW_CFA_expression,
		3,
		2,
		DW_OP_breg6,
		0x70
	};

	fuzz__seed(frame_pointer, sizeof(frame_pointer));
	fuzz__seed(expressions, sizeof(expressions));
}
