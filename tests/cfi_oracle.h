/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_CFI_ORACLE_H
#define BRAID_TESTS_CFI_ORACLE_H

/* Two independent readers of call frame information, with which an unwind table is compared. The
 * first are readelf's interpreted tables, row by row. The second is libdw, whose location
 * expressions are evaluated over made-up registers and memory. Functions are static, as tests and
 * tools are linked from one file each. */

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/insn/insn_ranges.h"
#include "core/unwind/unwind_table.h"

#define ORACLE_DIFFS_MAX 10 /* differences that are printed */
#define ORACLE_COLUMNS	 32

struct oracle_result {
	unsigned long n_checked;
	unsigned long n_differ;
};

static void oracle__differ(struct oracle_result *result, uint64_t vaddr,
			   const struct unwind_rule *got, const char *want)
{
	if (result->n_differ++ >= ORACLE_DIFFS_MAX)
		return;
	printf("# %#" PRIx64 ": kind %d reg %d off %d add %d rbp %d rbx %d flags %d, want %s\n",
	       vaddr, got->kind, got->reg, got->cfa_off, got->cfa_add, got->fp_words,
	       got->aux_words, got->flags, want);
}

/* --- readelf --- */

struct oracle_readelf {
	const struct elf_file *file;
	const struct unwind_table *table;
	struct oracle_result result;
	uint64_t signal_cies[64]; /* offsets of entries with augmentation 'S' */
	size_t n_signal_cies;
	char columns[ORACLE_COLUMNS][8];
	size_t n_columns;
	bool in_fde, signal;
	uint64_t start, end;
};

static int oracle__reg_number(const char *name, size_t len)
{
	static const char *const names[] = {
		"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
		"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"
	};

	for (int i = 0; i < 16; i++) {
		if (strlen(names[i]) == len && !strncmp(names[i], name, len))
			return i;
	}
	return -1;
}

static bool oracle__cfa_matches(const char *cfa, const struct unwind_rule *rule)
{
	size_t len = strcspn(cfa, "+-");
	long off = strtol(cfa + len, NULL, 10);

	if (!strcmp(cfa, "exp")) /* the expression is compared with libdw */
		return rule->kind == UNWIND_PLT || rule->kind == UNWIND_DEREF ||
		       rule->kind == UNWIND_REG || rule->kind == UNWIND_UNSUPPORTED;
	if (off % 8)
		return rule->kind == UNWIND_UNSUPPORTED;
	return (rule->kind == UNWIND_REG || rule->kind == UNWIND_END ||
		rule->kind == UNWIND_LINK) &&
	       rule->reg == oracle__reg_number(cfa, len) && rule->cfa_off == off;
}

static bool oracle__saved_matches(const char *cell, short words, int at_rbp)
{
	long off;

	if (!cell || !strcmp(cell, "s"))
		return words == UNWIND_WORDS_SAME && !at_rbp;
	if (!strcmp(cell, "u")) /* readelf: undefined, or not set yet */
		return (words == UNWIND_WORDS_SAME || words == UNWIND_WORDS_LOST) && !at_rbp;
	if (!strcmp(cell, "exp"))
		return at_rbp || words == UNWIND_WORDS_LOST;
	if (*cell != 'c')
		return words == UNWIND_WORDS_LOST;
	off = strtol(cell + 1, NULL, 10);
	return !at_rbp && (off % 8 ? words == UNWIND_WORDS_LOST : words == off / 8);
}

static bool oracle__row_matches(const struct oracle_readelf *o, char *cells[], size_t n_cells,
				const struct unwind_rule *rule)
{
	const char *ra = NULL, *rbp = NULL, *rbx = NULL, *rsp = NULL;

	for (size_t i = 1; i < n_cells && i < o->n_columns; i++) {
		const char *column = o->columns[i];

		ra = !strcmp(column, "ra") ? cells[i] : ra;
		rbp = !strcmp(column, "rbp") ? cells[i] : rbp;
		rbx = !strcmp(column, "rbx") ? cells[i] : rbx;
		rsp = !strcmp(column, "rsp") ? cells[i] : rsp;
	}
	if (o->signal)
		return rule->kind == UNWIND_SIGNAL;
	if (ra && !strcmp(ra, "u"))
		return rule->kind == UNWIND_END &&
		       (!strcmp(cells[0], "exp") || oracle__cfa_matches(cells[0], rule));
	if (ra && *ra == 'r' && cells[0][0] != 'e' && rule->kind == UNWIND_LINK)
		return rule->cfa_add == atoi(ra + 1) && oracle__cfa_matches(cells[0], rule);
	if (!ra || strcmp(ra, "c-8") || (rsp && strcmp(rsp, "u") && strcmp(rsp, "s")))
		return rule->kind == UNWIND_UNSUPPORTED;
	if (!oracle__cfa_matches(cells[0], rule))
		return false;
	return rule->kind == UNWIND_UNSUPPORTED ||
	       (oracle__saved_matches(rbp, rule->fp_words, rule->flags & UNWIND_FP_AT_FP) &&
		oracle__saved_matches(rbx, rule->aux_words, rule->flags & UNWIND_AUX_AT_FP));
}

static size_t oracle__split(char *line, char *ret_cells[ORACLE_COLUMNS])
{
	size_t n = 0;
	char *state;

	for (char *cell = strtok_r(line, " \n", &state); cell && n < ORACLE_COLUMNS;
	     cell = strtok_r(NULL, " \n", &state)) {
		if (*cell != '(') /* "r3 (rbx)" is one cell */
			ret_cells[n++] = cell;
	}
	return n;
}

static bool oracle__is_code(const struct elf_file *file, uint64_t vaddr)
{
	for (size_t i = 0; i < file->n_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];

		if (segment->exec && vaddr >= segment->vaddr &&
		    vaddr - segment->vaddr < segment->memsz)
			return true;
	}
	return false;
}

static void oracle__readelf_row(struct oracle_readelf *o, char *line)
{
	char want[256], *cells[ORACLE_COLUMNS];
	const struct unwind_rule *rule;
	uint64_t vaddr = strtoull(line, NULL, 16);
	size_t n;

	if (!o->in_fde || !o->start || vaddr >= o->end || !oracle__is_code(o->file, vaddr))
		return;
	snprintf(want, sizeof(want), "%.*s", (int)strcspn(line, "\n"), line);
	n = oracle__split(line, cells);
	rule = unwind_table__find(o->table, vaddr);
	o->result.n_checked++;
	if (n < 2 || !oracle__row_matches(o, cells + 1, n - 1, rule))
		oracle__differ(&o->result, vaddr, rule, want);
}

static void oracle__readelf_entry(struct oracle_readelf *o, const char *line)
{
	const char *fde = strstr(line, " FDE cie="), *cie = strstr(line, " CIE \"");
	uint64_t offset;

	if (cie && strchr(cie, 'S') && o->n_signal_cies < 64)
		o->signal_cies[o->n_signal_cies++] = strtoull(line, NULL, 16);
	o->in_fde = fde != NULL;
	o->signal = false;
	o->n_columns = 0;
	if (!fde || sscanf(fde, " FDE cie=%" SCNx64 " pc=%" SCNx64 "..%" SCNx64, &offset, &o->start,
			   &o->end) != 3)
		return;
	for (size_t i = 0; i < o->n_signal_cies; i++)
		o->signal |= o->signal_cies[i] == offset;
}

static void oracle__readelf_columns(struct oracle_readelf *o, char *line)
{
	char *cells[ORACLE_COLUMNS];
	size_t n = oracle__split(line, cells);

	for (size_t i = 1; i < n; i++)
		snprintf(o->columns[i - 1], sizeof(o->columns[0]), "%s", cells[i]);
	o->n_columns = n - 1;
}

/* Compares the rows with readelf's. A row counts only if no other follows for the same address
 * (advances by 0). Returns -1 if readelf failed. */
static inline int oracle__readelf(const char *path, const struct elf_file *file,
				  const struct unwind_table *table, struct oracle_result *ret)
{
	struct oracle_readelf o = { .file = file, .table = table };
	char command[512], line[512], row[512] = "";
	FILE *in;

	snprintf(command, sizeof(command), "LC_ALL=C readelf -W -wFN '%s' 2>/dev/null", path);
	in = popen(command, "r");
	if (!in)
		return -1;
	while (fgets(line, sizeof(line), in)) {
		bool is_row = strspn(line, "0123456789abcdef") == 16 && o.n_columns;

		if (*row && (!is_row || strncmp(row, line, 16) != 0))
			oracle__readelf_row(&o, row);
		*row = '\0';
		if (strstr(line, "Contents of"))
			o.n_signal_cies = 0;
		else if (strstr(line, " FDE ") || strstr(line, " CIE "))
			oracle__readelf_entry(&o, line);
		else if (strstr(line, " LOC "))
			oracle__readelf_columns(&o, line);
		else if (is_row)
			strcpy(row, line);
	}
	if (*row)
		oracle__readelf_row(&o, row);
	*ret = o.result;
	return pclose(in) ? -1 : 0;
}

/* --- libdw --- */

struct oracle_libdw {
	Dwarf *dwarf;
	Dwarf_CFI *eh, *debug; /* .eh_frame, .debug_frame; NULL: none */
	const struct unwind_table *table;
	struct oracle_result result;
	struct insn_ranges code; /* code that no description covers */
};

static Dwarf_Frame *oracle__look_up(const struct oracle_libdw *o, uint64_t vaddr)
{
	Dwarf_Frame *frame;

	if (o->eh && dwarf_cfi_addrframe(o->eh, vaddr, &frame) == 0)
		return frame;
	if (o->debug && dwarf_cfi_addrframe(o->debug, vaddr, &frame) == 0)
		return frame;
	return NULL;
}

/* Returns a made-up register or word of memory. All values differ, and none equal by chance. */
static uint64_t oracle__is_synthetic(uint64_t x)
{
	return (x ^ x >> 31) * 0x9e3779b97f4a7c15ULL;
}

static uint64_t oracle__register(int reg, uint64_t pc)
{
	return reg == 16 ? pc : oracle__is_synthetic(reg + 1);
}

/* Evaluates an expression. Returns 0, or -1 for an operation that a rule cannot express. */
static int oracle__eval(const Dwarf_Op *ops, size_t n, uint64_t pc, uint64_t cfa, uint64_t *ret)
{
	uint64_t stack[8] = { 0 };
	size_t top = 1; /* stack[0] is a guard */

	for (size_t i = 0; i < n; i++) {
		uint64_t a = ops[i].number, *s = &stack[top];
		int op = ops[i].atom;

		if (top < 1 || top > 6)
			return -1;
		if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
			s[0] = oracle__register(op - DW_OP_breg0, pc) + a, top++;
		else if (op == DW_OP_bregx)
			s[0] = oracle__register(a, pc) + ops[i].number2, top++;
		else if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
			s[0] = op - DW_OP_lit0, top++;
		else if (op == DW_OP_call_frame_cfa)
			s[0] = cfa, top++;
		else if (op == DW_OP_deref)
			s[-1] = oracle__is_synthetic(s[-1]);
		else if (op == DW_OP_plus_uconst)
			s[-1] += a;
		else if (top < 3)
			return -1;
		else if (op == DW_OP_plus)
			s[-2] += s[-1], top--;
		else if (op == DW_OP_and)
			s[-2] &= s[-1], top--;
		else if (op == DW_OP_ge)
			s[-2] = (int64_t)s[-2] >= (int64_t)s[-1], top--;
		else if (op == DW_OP_shl)
			s[-2] <<= s[-1] & 63, top--;
		else
			return -1;
	}
	*ret = stack[top - 1];
	return 0;
}

static uint64_t oracle__rule_cfa(const struct unwind_rule *rule, uint64_t pc)
{
	uint64_t value = oracle__register(rule->reg, pc) + rule->cfa_off;

	if (rule->kind == UNWIND_PLT)
		return oracle__register(UNWIND_REG_RSP, pc) + rule->cfa_off +
		       ((int)(pc & 15) >= rule->cfa_add ? 8 : 0);
	return rule->kind == UNWIND_DEREF ? oracle__is_synthetic(value) + rule->cfa_add : value;
}

/* Compares the place where libdw finds @reg saved with @words. */
static bool oracle__libdw_saved(Dwarf_Frame *frame, int reg, uint64_t pc, uint64_t cfa, short words,
				int at_rbp)
{
	uint64_t want, base = at_rbp ? oracle__register(UNWIND_REG_RBP, pc) : cfa;
	Dwarf_Op mem[3], *ops;
	size_t n;

	if (dwarf_frame_register(frame, reg, mem, &ops, &n) != 0)
		return false;
	if (!n && ops && reg == UNWIND_REG_RBX && words == UNWIND_WORDS_SAME)
		return true; /* libdw's defaults of the ABI do not state that rbx is preserved */
	if (!n)
		return words == (ops ? UNWIND_WORDS_LOST : UNWIND_WORDS_SAME) && !at_rbp;
	if (oracle__eval(ops, n, pc, cfa, &want) != 0 || (want - cfa) % 8)
		return at_rbp ? !oracle__eval(ops, n, pc, cfa, &want) && want == base + 8 * words
			      : words == UNWIND_WORDS_LOST;
	return (words != UNWIND_WORDS_SAME || at_rbp) && want == base + (int64_t)words * 8;
}

static int64_t oracle__offset(const Dwarf_Op *breg)
{
	return breg->atom == DW_OP_bregx ? breg->number2 : breg->number;
}

static bool oracle__libdw_matches(Dwarf_Frame *frame, uint64_t pc, const struct unwind_rule *rule)
{
	Dwarf_Op mem[3], *ops;
	uint64_t cfa, ra;
	size_t n;
	bool signal;

	if (dwarf_frame_info(frame, NULL, NULL, &signal) < 0)
		return false;
	if (signal)
		return rule->kind == UNWIND_SIGNAL;
	if (dwarf_frame_register(frame, 16, mem, &ops, &n) != 0)
		return false;
	if (!n && ops)
		return rule->kind == UNWIND_END;
	if (dwarf_frame_cfa(frame, &ops, &n) != 0)
		return true; /* libdw refuses def_cfa_register after an expression */
	if (oracle__eval(ops, n, pc, 0, &cfa) != 0 || (n == 1 && oracle__offset(ops) % 8))
		return rule->kind == UNWIND_UNSUPPORTED;
	if (dwarf_frame_register(frame, 16, mem, &ops, &n) != 0)
		return rule->kind == UNWIND_UNSUPPORTED;
	if (n == 1 && rule->kind == UNWIND_LINK)
		return oracle__rule_cfa(rule, pc) == cfa &&
		       ops->atom == DW_OP_reg0 + (unsigned)rule->cfa_add;
	if (dwarf_frame_register(frame, 16, mem, &ops, &n) != 0 ||
	    oracle__eval(ops, n, pc, cfa, &ra) != 0 || ra != cfa - 8)
		return rule->kind == UNWIND_UNSUPPORTED;
	if (rule->kind != UNWIND_REG && rule->kind != UNWIND_DEREF && rule->kind != UNWIND_PLT)
		return false;
	return oracle__rule_cfa(rule, pc) == cfa &&
	       oracle__libdw_saved(frame, UNWIND_REG_RBP, pc, cfa, rule->fp_words,
				   rule->flags & UNWIND_FP_AT_FP) &&
	       oracle__libdw_saved(frame, UNWIND_REG_RBX, pc, cfa, rule->aux_words,
				   rule->flags & UNWIND_AUX_AT_FP);
}

static bool oracle__is_padding(const struct oracle_libdw *o, uint64_t vaddr)
{
	Dwarf_Frame *frame = NULL;

	for (int i = 1; i < 16 && !frame; i++)
		frame = oracle__look_up(o, vaddr - i);
	free(frame);
	return frame;
}

static uint64_t oracle__row_vaddr(const struct unwind_table *table, uint32_t page, uint32_t row)
{
	return table->vaddr_start + ((uint64_t)page << UNWIND_PAGE_BITS) +
	       (table->words[table->rows_at + row] >> 16);
}

static void oracle__libdw_one(struct oracle_libdw *o, uint64_t vaddr)
{
	const struct unwind_rule *rule = unwind_table__find(o->table, vaddr);
	Dwarf_Frame *frame = oracle__look_up(o, vaddr);
	bool same;

	if (frame)
		same = oracle__libdw_matches(frame, vaddr, rule);
	else
		same = rule->kind == UNWIND_NONE || oracle__is_padding(o, vaddr) ||
		       insn_ranges__hold(&o->code,
					 vaddr); /* tests/tools/step_frames.c checks these */
	o->result.n_checked++;
	if (!same)
		oracle__differ(&o->result, vaddr, rule, frame ? "libdw's" : "no rule (libdw)");
	free(frame);
}

/* Compares the rules with libdw's at the first byte of about @n_samples rows, evenly spread, and at
 * the byte in front of it. */
static inline void oracle__libdw(const struct elf_file *file, const struct unwind_table *table,
				 uint32_t n_samples, struct oracle_result *ret)
{
	struct oracle_libdw o = { .table = table };
	uint32_t every = table->n_rows / n_samples + 1;

	insn_ranges__find(file, &o.code);
	o.eh = dwarf_getcfi_elf(file->elf);
	o.dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
	o.debug = o.dwarf ? dwarf_getcfi(o.dwarf) : NULL;
	for (uint32_t page = 0; page < table->n_pages; page++) {
		for (uint32_t row = table->words[page]; row < table->words[page + 1]; row++) {
			uint64_t vaddr = oracle__row_vaddr(table, page, row);

			if (row % every)
				continue;
			oracle__libdw_one(&o, vaddr);
			oracle__libdw_one(&o, vaddr - 1);
		}
	}
	*ret = o.result;
	insn_ranges__done(&o.code);
	dwarf_cfi_end(o.eh);
	dwarf_end(o.dwarf);
}

#endif
