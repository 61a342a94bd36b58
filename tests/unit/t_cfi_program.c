// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/cfi_program.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/util.h"
#include "tests/tap.h"

#define START 0x1000
#define END   0x1100

#define RBX 3
#define RBP 6
#define RSP 7
#define R10 10
#define RA  16

#define BYTES(...)                                  \
	.bytes = (const uint8_t[]) { __VA_ARGS__ }, \
	.size = sizeof((const uint8_t[]) { __VA_ARGS__ })
#define ADVANCE(n) (DW_CFA_advance_loc | (n))
#define OFFSET(r)  (DW_CFA_offset | (r))
#define RESTORE(r) (DW_CFA_restore | (r))
#define DEREF_CFA  DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref /* *(rbp-8) */
#define PLT_CFA(n)                                                                              \
	DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, \
		DW_OP_lit0 + (n), DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus

static const struct {
	const char *name;
	const uint8_t *bytes;
	size_t size;
	const char *want; /* one "[start-end rule]" per distinct row */
} cases[] = {
	{ "nothing", BYTES(DW_CFA_nop), "[0-100 rsp+8]" },
	{ "push rbp; mov; leave",
	  BYTES(ADVANCE(1), DW_CFA_def_cfa_offset, 16, OFFSET(RBP), 2, ADVANCE(3),
		DW_CFA_def_cfa_register, RBP, ADVANCE(32), DW_CFA_def_cfa, RSP, 8, RESTORE(RBP)),
	  "[0-1 rsp+8][1-4 rsp+16 rbp-2][4-24 rbp+16 rbp-2][24-100 rsp+8]" },
	{ "remember and restore",
	  BYTES(DW_CFA_def_cfa_offset, 24, OFFSET(RBX), 3, ADVANCE(16), DW_CFA_remember_state,
		DW_CFA_def_cfa_offset, 8, RESTORE(RBX), ADVANCE(1), DW_CFA_restore_state),
	  "[0-10 rsp+24 rbx-3][10-11 rsp+8][11-100 rsp+24 rbx-3]" },
	{ "long advances",
	  BYTES(DW_CFA_advance_loc1, 2, DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc2, 4, 0,
		DW_CFA_def_cfa_offset, 24, DW_CFA_advance_loc4, 8, 0, 0, 0, DW_CFA_def_cfa_offset,
		32),
	  "[0-2 rsp+8][2-6 rsp+16][6-e rsp+24][e-100 rsp+32]" },
	{ "advance behind the end", BYTES(DW_CFA_advance_loc4, 0xff, 0xff, 0xff, 0xff, 0x3f),
	  "[0-100 rsp+8]" },
	{ "set_loc", BYTES(DW_CFA_set_loc, 0x10, 0x10, 0, 0, 0, 0, 0, 0, DW_CFA_def_cfa_offset, 16),
	  "[0-10 rsp+8][10-100 rsp+16]" },
	{ "set_loc backwards", BYTES(ADVANCE(4), DW_CFA_set_loc, 0, 0x10, 0, 0, 0, 0, 0, 0),
	  "[0-4 rsp+8][4-100 unsupported]" },
	{ "signed and extended forms",
	  BYTES(DW_CFA_def_cfa_sf, RBP, 0x7e, DW_CFA_offset_extended, RBP, 2,
		DW_CFA_offset_extended_sf, RBX, 3),
	  "[0-100 rbp+16 rbp-2 rbx-3]" },
	{ "def_cfa_offset_sf; restore_extended",
	  BYTES(OFFSET(RBP), 2, ADVANCE(1), DW_CFA_def_cfa_offset_sf, 0x7d, DW_CFA_restore_extended,
		RBP),
	  "[0-1 rsp+8 rbp-2][1-100 rsp+24]" },
	{ "GNU opcodes",
	  BYTES(DW_CFA_GNU_args_size, 16, DW_CFA_GNU_negative_offset_extended, RBX, 2),
	  "[0-100 rsp+8 rbx+2]" },
	{ "registers that are gone", BYTES(DW_CFA_undefined, RBX, DW_CFA_register, RBP, R10),
	  "[0-100 rsp+8 rbp? rbx?]" },
	{ "values instead of places",
	  BYTES(DW_CFA_val_offset, RBX, 2, DW_CFA_val_expression, RBP, 2, DW_OP_breg6, 0),
	  "[0-100 rsp+8 rbp? rbx?]" },
	{ "val_offset_sf; same_value",
	  BYTES(DW_CFA_val_offset_sf, RBX, 2, OFFSET(RBP), 2, ADVANCE(1), DW_CFA_same_value, RBX,
		DW_CFA_same_value, RBP),
	  "[0-1 rsp+8 rbp-2 rbx?][1-100 rsp+8]" },
	{ "saved at rbp",
	  BYTES(DW_CFA_expression, RBP, 2, DW_OP_breg6, 0, DW_CFA_expression, RBX, 2, DW_OP_breg6,
		0x70),
	  "[0-100 rsp+8 rbp@0 rbx@-2]" },
	{ "saved at rbp, then restored",
	  BYTES(DW_CFA_expression, RBP, 2, DW_OP_breg6, 0, ADVANCE(1), RESTORE(RBP)),
	  "[0-1 rsp+8 rbp@0][1-100 rsp+8]" },
	{ "saved elsewhere by expression",
	  BYTES(DW_CFA_expression, RBP, 3, DW_OP_breg6, 0, DW_OP_deref, DW_CFA_expression, RBX, 2,
		DW_OP_breg6, 4),
	  "[0-100 rsp+8 rbp? rbx?]" },
	{ "registers of no interest", BYTES(OFFSET(12), 3, DW_CFA_undefined, 2), "[0-100 rsp+8]" },
	{ "PLT", BYTES(PLT_CFA(11)), "[0-100 plt+8/11]" },
	{ "PLT with IBT", BYTES(PLT_CFA(9)), "[0-100 plt+8/9]" },
	{ "like a PLT",
	  BYTES(DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15,
		DW_OP_or, DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus),
	  "[0-100 unsupported]" },
	{ "CFA by dereference", BYTES(DEREF_CFA), "[0-100 *(rbp-8)+0]" },
	{ "and an addend",
	  BYTES(DW_CFA_def_cfa_expression, 5, DW_OP_breg7, 0x10, DW_OP_deref, DW_OP_plus_uconst, 8),
	  "[0-100 *(rsp+16)+8]" },
	{ "and a literal addend",
	  BYTES(DW_CFA_def_cfa_expression, 5, DW_OP_breg7, 0x10, DW_OP_deref, DW_OP_lit8,
		DW_OP_plus),
	  "[0-100 *(rsp+16)+8]" },
	{ "and too much",
	  BYTES(DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 0x10, DW_OP_deref, DW_OP_deref),
	  "[0-100 unsupported]" },
	{ "CFA by simple expression", BYTES(DW_CFA_def_cfa_expression, 3, DW_OP_breg10, 0x90, 0x01),
	  "[0-100 r10+144]" },
	{ "empty expression", BYTES(DW_CFA_def_cfa_expression, 0), "[0-100 unsupported]" },
	{ "def_cfa_offset and _register after an expression, def_cfa",
	  BYTES(DEREF_CFA, ADVANCE(1), DW_CFA_def_cfa_offset, 24, ADVANCE(1),
		DW_CFA_def_cfa_register, RBP, ADVANCE(1), DW_CFA_def_cfa, RSP, 16),
	  "[0-1 *(rbp-8)+0][1-2 *(rbp-8)+0][2-3 rbp+24][3-100 rsp+16]" },
	{ "a CFA that can be held after one that cannot",
	  BYTES(DW_CFA_def_cfa_offset, 12, ADVANCE(1), DW_CFA_def_cfa_offset, 16, ADVANCE(1),
		DW_CFA_def_cfa_register, 17, ADVANCE(1), DW_CFA_def_cfa_register, RBP),
	  "[0-1 unsupported][1-2 rsp+16][2-3 unsupported][3-100 rbp+16]" },
	{ "outermost", BYTES(DW_CFA_undefined, RA, OFFSET(RBX), 2), "[0-100 end rsp+8]" },
	{ "outermost, CFA unknown", BYTES(DEREF_CFA, DW_CFA_undefined, RA), "[0-100 end rsp+8]" },
	{ "return address elsewhere", BYTES(OFFSET(RA), 2), "[0-100 unsupported]" },
	{ "return address in a register", BYTES(DW_CFA_register, RA, 1), "[0-100 link rdx rsp+8]" },
	{ "as glibc's vfork has it",
	  BYTES(ADVANCE(1), DW_CFA_def_cfa_offset, 0, DW_CFA_register, RA, 5, ADVANCE(8),
		DW_CFA_def_cfa_offset, 8, ADVANCE(1), RESTORE(RA)),
	  "[0-1 rsp+8][1-9 link rdi rsp+0][9-a link rdi rsp+8][a-100 rsp+8]" },
	{ "return address in a register that there is not", BYTES(DW_CFA_register, RA, 16),
	  "[0-100 unsupported]" },
	{ "return address in a register, CFA unknown", BYTES(DEREF_CFA, DW_CFA_register, RA, 1),
	  "[0-100 unsupported]" },
	{ "rsp is not the CFA", BYTES(OFFSET(RSP), 2), "[0-100 unsupported]" },
	{ "odd offsets",
	  BYTES(DW_CFA_expression, RBP, 2, DW_OP_breg6, 1, ADVANCE(1), DW_CFA_def_cfa_offset, 12),
	  "[0-1 rsp+8 rbp?][1-100 unsupported]" },
	{ "offsets that do not fit",
	  BYTES(OFFSET(RBP), 0x80, 0x80, 2, OFFSET(RBX), 0, ADVANCE(1), DW_CFA_def_cfa_offset, 0x80,
		0x80, 0x80, 0x80, 0x08),
	  "[0-1 rsp+8 rbp? rbx?][1-100 unsupported]" },
	{ "greatest offset that fits",
	  BYTES(OFFSET(RBP), 0xff, 0xff, 1, DW_CFA_def_cfa_offset, 0xf8, 0xff, 0xff, 0xff, 0x07),
	  "[0-100 rsp+2147483640 rbp-32767]" },
	{ "CFA register unknown", BYTES(DW_CFA_def_cfa, 17, 8), "[0-100 unsupported]" },
	{ "unknown opcode",
	  BYTES(ADVANCE(8), DW_CFA_def_cfa_offset, 16, ADVANCE(8), 0x2d, DW_CFA_def_cfa_offset, 8),
	  "[0-8 rsp+8][8-10 rsp+16][10-100 unsupported]" },
	{ "truncated operand", BYTES(ADVANCE(8), DW_CFA_def_cfa_offset, 0x80),
	  "[0-8 rsp+8][8-100 unsupported]" },
	{ "truncated advance", BYTES(DW_CFA_advance_loc4, 1, 0), "[0-100 unsupported]" },
	{ "block behind the end", BYTES(DW_CFA_def_cfa_expression, 9, DW_OP_breg6, 0),
	  "[0-100 unsupported]" },
	{ "restore without remember", BYTES(DW_CFA_restore_state), "[0-100 unsupported]" },
};

/* The common entry that compilers and assemblers write for x86-64. */
static const uint8_t usual_cie[] = { DW_CFA_def_cfa, RSP, 8, OFFSET(RA), 1 };

static const char *const reg_names[] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
					 "r8",	"r9",  "r10", "r11", "r12", "r13", "r14", "r15" };

struct text {
	char text[512];
	size_t len;
	uint64_t at; /* required start of the next range */
};

static void add(struct text *text, const char *name, short words, int at_rbp)
{
	char *end = text->text + text->len;
	size_t room = sizeof(text->text) - text->len;

	if (words == UNWIND_WORDS_LOST)
		text->len += snprintf(end, room, " %s?", name);
	else if (at_rbp)
		text->len += snprintf(end, room, " %s@%d", name, words);
	else if (words != UNWIND_WORDS_SAME)
		text->len += snprintf(end, room, " %s%+d", name, words);
}

static int add_range(void *ctx, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
	struct text *text = ctx;
	const char *reg = reg_names[rule->reg];
	char cfa[64] = "?";

	if (rule->kind == UNWIND_UNSUPPORTED)
		strcpy(cfa, "unsupported");
	else if (rule->kind == UNWIND_SIGNAL)
		strcpy(cfa, "signal");
	else if (rule->kind == UNWIND_PLT)
		snprintf(cfa, sizeof(cfa), "plt+%d/%d", rule->cfa_off, rule->cfa_add);
	else if (rule->kind == UNWIND_DEREF)
		snprintf(cfa, sizeof(cfa), "*(%s%+d)%+d", reg, rule->cfa_off, rule->cfa_add);
	else if (rule->kind == UNWIND_LINK)
		snprintf(cfa, sizeof(cfa), "link %s %s%+d", reg_names[rule->cfa_add], reg,
			 rule->cfa_off);
	else if (rule->kind == UNWIND_REG || rule->kind == UNWIND_END)
		snprintf(cfa, sizeof(cfa), "%s%s%+d", rule->kind == UNWIND_END ? "end " : "", reg,
			 rule->cfa_off);
	text->len += snprintf(text->text + text->len, sizeof(text->text) - text->len,
			      "[%" PRIx64 "-%" PRIx64 " %s", start - START, end - START, cfa);
	add(text, "rbp", rule->fp_words, rule->flags & UNWIND_FP_AT_FP);
	add(text, "rbx", rule->aux_words, rule->flags & UNWIND_AUX_AT_FP);
	text->len += snprintf(text->text + text->len, sizeof(text->text) - text->len, "]");
	if (start != text->at || end <= start || end > END)
		strcpy(text->text, "ranges do not adjoin");
	text->at = end;
	return 0;
}

static struct cfi_cie cie; /* common entry of the last program */

static struct cfi_program program_of(const uint8_t *code, size_t size)
{
	struct cfi_program program;

	cie = (struct cfi_cie) {
		.code_align = 1, .data_align = -8, .ra_reg = RA, .code = code, .code_size = size
	};
	cfi_program__prepare(&program, &cie, &arch_x86_64);
	return program;
}

static void check_run(const struct cfi_program *program, const uint8_t *bytes, size_t size,
		      const char *want, const char *name)
{
	struct text got = { .at = START };
	int rc = cfi_program__run(program, bytes, size, START, END, add_range, &got);

	is_str(rc ? "failed" : got.text, want, "%s", name);
}

static void test_cies(void)
{
	static const uint8_t nop[] = { DW_CFA_nop }, advance[] = { ADVANCE(2) };
	static const uint8_t save_rbp[] = { OFFSET(RBP), 2 };
	static const uint8_t unknown[] = { DW_CFA_def_cfa, RSP, 8, 0x2d };
	static const uint8_t advancing[] = { DW_CFA_def_cfa, RSP, 8, ADVANCE(1) };
	uint8_t nops[4096] = { 0 };
	struct cfi_program program = program_of(usual_cie, sizeof(usual_cie));

	cie.signal = true;
	check_run(&program, nop, sizeof(nop), "[0-100 signal]", "signal frame");
	program = program_of(unknown, sizeof(unknown));
	check_run(&program, nop, sizeof(nop), "[0-100 unsupported]",
		  "unknown opcode in the common entry");
	program = program_of(advancing, sizeof(advancing));
	check_run(&program, nop, sizeof(nop), "[0-100 unsupported]", "the common entry advances");
	program = program_of(usual_cie, 3);
	check_run(&program, nop, sizeof(nop), "[0-100 unsupported]",
		  "no rule for the return address");
	program = program_of(usual_cie + 3, 2);
	check_run(&program, nop, sizeof(nop), "[0-100 unsupported]", "no CFA");
	program = program_of(nops, sizeof(nops));
	ok(!program.usable, "a common entry of %zu bytes is not run", sizeof(nops));
	program = program_of(usual_cie, sizeof(usual_cie));
	cie.code_align = UINT64_MAX;
	check_run(&program, advance, sizeof(advance), "[0-100 rsp+8]", "code alignment overflows");
	cie.data_align = INT64_MIN;
	check_run(&program, save_rbp, sizeof(save_rbp), "[0-100 rsp+8 rbp?]",
		  "data alignment overflows");
}

/* DW_CFA_remember_state nests up to a limit. */
static void test_nesting(void)
{
	struct cfi_program program = program_of(usual_cie, sizeof(usual_cie));
	uint8_t code[128];

	memset(code, DW_CFA_remember_state, sizeof(code));
	memset(code + 16, DW_CFA_restore_state, 16);
	check_run(&program, code, 32, "[0-100 rsp+8]", "16 remembered states");
	memset(code, DW_CFA_remember_state, sizeof(code));
	check_run(&program, code, sizeof(code), "[0-100 unsupported]", "128 remembered states");
}

static int fail(void *ctx, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
	(void)start, (void)end, (void)rule;
	++*(int *)ctx;
	return -42;
}

int main(void)
{
	static const uint8_t two_rows[] = { ADVANCE(1), DW_CFA_def_cfa_offset, 16 };
	struct cfi_program program = program_of(usual_cie, sizeof(usual_cie));
	int calls = 0;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_run(&program, cases[i].bytes, cases[i].size, cases[i].want, cases[i].name);
	test_cies();
	test_nesting();
	is_int(cfi_program__run(&program, two_rows, sizeof(two_rows), START, END, fail, &calls),
	       -42, "the callback's failure is propagated");
	is_int(calls, 1, "and ends the run");
	return tap__done();
}
