// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/insn/insn_steps.h"

#include <capstone/capstone.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/unwind_rule.h"
#include "core/base/quota.h"
#include "core/base/util.h"

#define BYTES_MAX   (16 << 20) /* bytes of one range: more than the limit of steps */
#define PIECE_BYTES (64 << 10)
#define ZEROES	    32 /* this many bytes of 0 are no code */

/* Returns the DWARF number of @reg, or UNWIND_REGS. */
static uint8_t number_of(x86_reg reg)
{
	static const x86_reg numbers[] = { X86_REG_RAX, X86_REG_RDX, X86_REG_RCX, X86_REG_RBX,
					   X86_REG_RSI, X86_REG_RDI, X86_REG_RBP, X86_REG_RSP,
					   X86_REG_R8,	X86_REG_R9,  X86_REG_R10, X86_REG_R11,
					   X86_REG_R12, X86_REG_R13, X86_REG_R14, X86_REG_R15 };

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (numbers[i] == reg)
			return i;
	return UNWIND_REGS;
}

static bool is_reg(const cs_x86_op *op, x86_reg reg)
{
	return op->type == X86_OP_REG && op->reg == reg;
}

/* Returns true for rsp and its parts. */
static bool is_stack_pointer(x86_reg reg)
{
	return reg == X86_REG_RSP || reg == X86_REG_ESP || reg == X86_REG_SP || reg == X86_REG_SPL;
}

static bool is_rbp(x86_reg reg)
{
	return reg == X86_REG_RBP || reg == X86_REG_EBP || reg == X86_REG_BP || reg == X86_REG_BPL;
}

static bool is_rbx(x86_reg reg)
{
	return reg == X86_REG_RBX || reg == X86_REG_EBX || reg == X86_REG_BX || reg == X86_REG_BL ||
	       reg == X86_REG_BH;
}

static uint8_t whole_register(const cs_x86_op *op)
{
	return op->type == X86_OP_REG ? number_of(op->reg) : UNWIND_REGS;
}

/* Decodes an instruction that writes the stack pointer. */
static void take_pointer(const cs_insn *insn, const cs_x86_op *from, struct insn_step *step)
{
	step->op = INSN_LOSE;
	if (insn->id == X86_INS_MOV && is_reg(from, X86_REG_RBP)) {
		step->op = INSN_LOAD;
	} else if (insn->id == X86_INS_MOV && whole_register(from) < UNWIND_REGS) {
		step->op = INSN_LOAD_FROM;
		step->reg = whole_register(from);
	} else if ((insn->id == X86_INS_ADD || insn->id == X86_INS_SUB) &&
		   from->type == X86_OP_IMM && from->imm == (int32_t)from->imm) {
		step->op = INSN_MOVE;
		step->value = (int32_t)(insn->id == X86_INS_ADD ? from->imm : -from->imm);
	} else if (insn->id == X86_INS_AND && from->type == X86_OP_IMM) {
		step->op = INSN_ALIGN;
	} else if (insn->id == X86_INS_LEA && from->type == X86_OP_MEM &&
		   from->mem.index == X86_REG_INVALID &&
		   from->mem.disp == (int32_t)from->mem.disp) {
		step->value = from->mem.disp;
		if (from->mem.base == X86_REG_RSP)
			step->op = INSN_MOVE;
		else if (from->mem.base == X86_REG_RBP)
			step->op = INSN_LOAD;
		else if (number_of(from->mem.base) < UNWIND_REGS) {
			step->op = INSN_LOAD_FROM;
			step->reg = number_of(from->mem.base);
		}
	}
}

static bool is_on_stack(const cs_x86_op *op)
{
	return op->type == X86_OP_MEM && op->mem.base == X86_REG_RSP &&
	       op->mem.index == X86_REG_INVALID && op->mem.segment == X86_REG_INVALID &&
	       op->mem.disp == (int32_t)op->mem.disp;
}

/* Decodes lea value(%rsp),%reg. */
static void take_address(const cs_insn *insn, struct insn_step *step)
{
	const cs_x86_op *op = insn->detail->x86.operands;
	uint8_t to = whole_register(&op[0]);

	if (to == UNWIND_REGS || to == UNWIND_REG_RBP || to == UNWIND_REG_RSP ||
	    !is_on_stack(&op[1]))
		return;
	step->op = INSN_COPY;
	step->reg = to;
	step->value = op[1].mem.disp;
}

/* Decodes mov between registers and words of the stack. */
static void take_move(const cs_insn *insn, struct insn_step *step)
{
	const cs_x86_op *op = insn->detail->x86.operands;
	uint8_t to, from;

	if (insn->id != X86_INS_MOV || insn->detail->x86.op_count != 2)
		return;
	to = whole_register(&op[0]);
	from = whole_register(&op[1]);
	if (is_on_stack(&op[0]) && from < UNWIND_REGS) {
		step->op = INSN_STORE;
		step->reg = from;
		step->value = op[0].mem.disp;
	} else if (is_on_stack(&op[1]) &&
		   (to == UNWIND_REG_RBP || to == UNWIND_REG_RBX || to == UNWIND_REG_RSP)) {
		step->op = INSN_FETCH;
		step->reg = to;
		step->value = op[1].mem.disp;
	} else if (from == UNWIND_REG_RSP && to < UNWIND_REGS && to != UNWIND_REG_RBP &&
		   to != UNWIND_REG_RSP) {
		step->op = INSN_COPY;
		step->reg = to;
	}
}

static void take_operands(const cs_insn *insn, struct insn_step *step)
{
	const cs_x86 *x86 = &insn->detail->x86;
	const cs_x86_op *op = x86->operands;

	if (step->op == INSN_OTHER)
		take_move(insn, step);
	for (int i = 0; i < x86->op_count && step->op == INSN_OTHER; i++) {
		if (op[i].type != X86_OP_REG || !(op[i].access & CS_AC_WRITE))
			continue;
		if (op[i].reg == X86_REG_RSP && !i && x86->op_count == 2)
			take_pointer(insn, &op[1], step);
		else if (is_stack_pointer(op[i].reg))
			step->op = INSN_LOSE;
		else if (is_rbx(op[i].reg))
			step->op = INSN_LOSE_RBX;
		else if (is_rbp(op[i].reg))
			step->op = insn->id == X86_INS_MOV && is_reg(&op[1], X86_REG_RSP) &&
						   op[i].reg == X86_REG_RBP
					   ? INSN_SAVE
				   : insn->id == X86_INS_XOR && op[0].reg == op[1].reg &&
						   op[1].type == X86_OP_REG
					   ? INSN_ZERO_RBP
					   : INSN_LOSE_RBP;
	}
}

static void take_branch(const cs_insn *insn, enum insn_op direct, enum insn_op other,
			struct insn_step *step)
{
	const cs_x86_op *op = &insn->detail->x86.operands[0];

	step->op = other;
	if (op->type != X86_OP_IMM)
		return;
	step->op = direct;
	step->target = op->imm;
}

/* Decodes lea table(%rip),%reg. */
static void take_table(const cs_insn *insn, struct insn_step *step)
{
	const cs_x86_op *op = insn->detail->x86.operands;

	take_address(insn, step);
	take_operands(insn, step);
	if (step->op != INSN_OTHER || op[1].type != X86_OP_MEM || op[1].mem.base != X86_REG_RIP)
		return;
	step->op = INSN_TABLE;
	step->target = insn->address + insn->size + op[1].mem.disp;
}

/* Decodes jmp *table(,%reg,8) and jmp *word(%rip). */
static void take_switch(const cs_insn *insn, struct insn_step *step)
{
	const cs_x86_op *op = insn->detail->x86.operands;

	take_branch(insn, INSN_JUMP, INSN_SWITCH, step);
	if (op->type == X86_OP_MEM && op->mem.scale == 8 && op->mem.base == X86_REG_INVALID &&
	    op->mem.disp > 0)
		step->target = op->mem.disp;
	if (op->type == X86_OP_MEM && op->mem.base == X86_REG_RIP)
		step->op = INSN_TAIL;
}

static void take_stack(const cs_insn *insn, enum insn_op op, struct insn_step *step)
{
	const cs_x86 *x86 = &insn->detail->x86;

	step->op = op;
	step->value = x86->op_count && x86->operands[0].size == 2 ? 2 : 8;
	step->reg = x86->op_count && x86->operands[0].type == X86_OP_REG
			    ? number_of(x86->operands[0].reg)
			    : UNWIND_REGS;
	if (op == INSN_POP && step->reg == UNWIND_REG_RSP) {
		step->op = INSN_FETCH;
		step->value = 0;
	}
}

/* Decodes cmp $value,%reg and and $value,%reg. */
static void take_bound(const cs_insn *insn, struct insn_step *step)
{
	const cs_x86_op *op = insn->detail->x86.operands;

	take_operands(insn, step);
	if (step->op != INSN_OTHER || insn->detail->x86.op_count != 2 || op[1].type != X86_OP_IMM ||
	    op[1].imm != (int32_t)op[1].imm)
		return;
	step->op = INSN_BOUND;
	step->value = op[1].imm;
}

static uint8_t part_of(x86_reg reg)
{
	static const x86_reg parts[][5] = {
		{ X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL, X86_REG_AH },
		{ X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL, X86_REG_DH },
		{ X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL, X86_REG_CH },
		{ X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL, X86_REG_BH },
		{ X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL },
		{ X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL },
		{ X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL },
		{ X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL },
		{ X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B },
		{ X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B },
		{ X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B },
		{ X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B },
		{ X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B },
		{ X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B },
		{ X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B },
		{ X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B },
	};

	for (size_t i = 0; reg && i < ARRAY_SIZE(parts); i++)
		for (size_t k = 0; k < ARRAY_SIZE(parts[i]); k++)
			if (parts[i][k] == reg)
				return i;
	return UNWIND_REGS;
}

/* Returns the registers that the instruction writes, as operands or implicitly. */
static uint16_t written_by(const cs_insn *insn)
{
	const cs_detail *detail = insn->detail;
	uint32_t ret = 0;

	for (int i = 0; i < detail->x86.op_count; i++)
		if (detail->x86.operands[i].type == X86_OP_REG &&
		    detail->x86.operands[i].access & CS_AC_WRITE)
			ret |= 1U << part_of(detail->x86.operands[i].reg);
	for (int i = 0; i < detail->regs_write_count; i++)
		ret |= 1U << part_of(detail->regs_write[i]);
	return ret; /* without the bit UNWIND_REGS, for other registers */
}

static void take(csh handle, const cs_insn *insn, struct insn_step *step)
{
	step->writes = written_by(insn);
	switch (insn->id) {
	case 0: /* no instruction */
	case X86_INS_HLT:
	case X86_INS_INT3:
	case X86_INS_UD2:
		step->op = INSN_STOP;
		return;
	case X86_INS_NOP:
		step->op = INSN_PADDING;
		return;
	case X86_INS_PUSH:
	case X86_INS_PUSHFQ:
		take_stack(insn, INSN_PUSH, step);
		return;
	case X86_INS_POP:
	case X86_INS_POPFQ:
		take_stack(insn, INSN_POP, step);
		return;
	case X86_INS_LEAVE:
		step->op = INSN_LEAVE;
		return;
	case X86_INS_CPUID:
		step->op = INSN_LOSE_RBX;
		return;
	case X86_INS_ENTER:
		step->op = INSN_LOSE;
		return;
	case X86_INS_RET:
	case X86_INS_RETF:
	case X86_INS_RETFQ:
		step->op = INSN_RETURN;
		return;
	case X86_INS_CALL:
	case X86_INS_LCALL:
		take_branch(insn, INSN_CALL, INSN_CALL, step);
		return;
	case X86_INS_JMP:
	case X86_INS_LJMP:
		take_switch(insn, step);
		return;
	case X86_INS_LEA:
		take_table(insn, step);
		return;
	case X86_INS_CMP:
	case X86_INS_AND:
		take_bound(insn, step);
		return;
	default:
		if (cs_insn_group(handle, insn, CS_GRP_JUMP))
			take_branch(insn, INSN_BRANCH, INSN_OTHER, step);
		else
			take_operands(insn, step);
	}
}

/* Returns true for `mov $15,%eax` or %rax before a system call. */
static bool is_sigreturn(const uint8_t *code, size_t size)
{
	static const char *const forms[] = { "\x48\xc7\xc0\x0f\0\0\0\x0f\x05",
					     "\xb8\x0f\0\0\0\x0f\x05" };
	static const size_t sizes[] = { 9, 7 };

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if (size >= sizes[i] && !memcmp(code, forms[i], sizes[i]))
			return true;
	return false;
}

/* Returns the size of ModRM, SIB and displacement in 64-bit mode (Intel's manual, volume 2, 2.1),
 * or 0 if the code ends before. EVEX has the same sizes, as its short displacements are scaled and
 * not longer. */
static size_t operand_bytes(const uint8_t *code, size_t size)
{
	uint8_t mode, rm;

	if (size < 2)
		return 0;
	mode = code[0] >> 6;
	rm = code[0] & 7;
	if (mode == 3)
		return 1;
	return 1 + (rm == 4) +
	       (mode == 1						  ? 1
		: mode == 2 || rm == 5 || (rm == 4 && (code[1] & 7) == 5) ? 4
									  : 0);
}

/* Returns the size of a vector instruction (VEX, EVEX), or 0. Capstone does not decode all of them.
 * They write neither the stack pointer nor the other registers that matter here. */
static size_t vector_bytes(const uint8_t *code, size_t size)
{
	size_t prefix = code[0] == 0x62	  ? 4
			: code[0] == 0xc4 ? 3
			: code[0] == 0xc5 ? 2
					  : 0,
	       operands;
	uint8_t map, opcode;
	bool immediate;

	if (!prefix || size < prefix + 3)
		return 0;
	map = prefix == 2 ? 1 : code[1] & (prefix == 4 ? 7 : 31);
	opcode = code[prefix];
	operands = operand_bytes(code + prefix + 1, size - prefix - 1);
	immediate =
		map == 3 || (map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 ||
					  (opcode >= 0xc4 && opcode <= 0xc6)));
	if (map < 1 || map > 6 || !operands || size < prefix + 1 + operands + immediate)
		return 0;
	return prefix + 1 + operands + immediate;
}

/* Returns the size of a prefetch (0f 0d, with prefixes before), which Capstone 4 does not decode,
 * or 0. It changes no register. */
static size_t prefetch_bytes(const uint8_t *code, size_t size)
{
	size_t prefixes = size && (code[0] & 0xf0) == 0x40, operands;

	if (size < prefixes + 3 || code[prefixes] != 0x0f || code[prefixes + 1] != 0x0d)
		return 0;
	operands = operand_bytes(code + prefixes + 2, size - prefixes - 2);
	return !operands || code[prefixes + 2] >> 6 == 3 || size < prefixes + 2 + operands
		       ? 0
		       : prefixes + 2 + operands;
}

static size_t count_zeroes(const uint8_t *code, size_t size)
{
	size_t n = 0;

	while (n < size && !code[n])
		n++;
	return n;
}

static int read_all(csh handle, cs_insn *insn, struct insn_steps *steps, const uint8_t *code,
		    size_t size, uint64_t vaddr)
{
	bool signal = false;

	for (uint64_t i = 0; size; i++) {
		struct insn_step *step;
		int rc = quota__look_at(i);
		size_t zeroes = count_zeroes(code, min_of(size, ZEROES));

		if (rc)
			return rc;
		if (zeroes == ZEROES) {
			zeroes = count_zeroes(code, size);
			code += zeroes;
			size -= zeroes;
			vaddr += zeroes;
			continue;
		}
		if (steps->n == INSN_STEPS_MAX)
			return -E2BIG;
		if (array__reserve(&steps->list, &steps->cap, steps->n + 1, sizeof(*steps->list)))
			return -ENOMEM;
		step = &steps->list[steps->n++];
		*step = (struct insn_step) { .vaddr = vaddr, .reg = UNWIND_REGS };
		if (is_sigreturn(code, size) || signal) {
			signal = !signal;
			step->op = INSN_SIGNAL;
		}
		if (!cs_disasm_iter(handle, &code, &size, &vaddr, insn)) {
			size_t bytes = vector_bytes(code, size) ?: prefetch_bytes(code, size);

			step->op = bytes ? INSN_OTHER : INSN_STOP;
			step->unknown = !bytes;
			step->writes = (uint16_t) ~(1U << UNWIND_REG_RBX | 1U << UNWIND_REG_RBP |
						    1U << UNWIND_REG_RSP);
			code += max_of(bytes, (size_t)1);
			size -= max_of(bytes, (size_t)1);
			vaddr += max_of(bytes, (size_t)1);
		} else if (step->op == INSN_OTHER) {
			take(handle, insn, step);
		}
		step->size = vaddr - step->vaddr;
	}
	return 0;
}

/* Reads code in pieces: tests/replay/extract.c regards longer reads as searches, whose bytes it
 * does not store. */
static int read_code(const struct elf_file *file, uint64_t start, uint8_t *to, size_t size)
{
	int ret = 0;

	for (size_t at = 0; at < size && !ret; at += PIECE_BYTES)
		ret = elf_file__read(file, start + at, to + at,
				     min_of((size_t)PIECE_BYTES, size - at));
	return ret;
}

int insn_steps__read(struct insn_steps *steps, const struct elf_file *file, uint64_t start,
		     uint64_t end)
{
	size_t size = end - start;
	uint8_t *code = size && size <= BYTES_MAX ? malloc(size) : NULL;
	csh handle;
	cs_insn *insn;
	int ret = -ENOMEM;

	if (!size || size > BYTES_MAX || (code && read_code(file, start, code, size))) {
		free(code);
		return 0;
	}
	if (!code || cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK) {
		free(code);
		return ret;
	}
	if (cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON) == CS_ERR_OK &&
	    (insn = cs_malloc(handle)) != NULL) {
		ret = read_all(handle, insn, steps, code, size, start);
		cs_free(insn, 1);
	}
	cs_close(&handle);
	free(code);
	return ret;
}

void insn_steps__done(struct insn_steps *steps)
{
	free(steps->list);
	memset(steps, 0, sizeof(*steps));
}

struct insn_step *insn_steps__at(const struct insn_steps *steps, uint64_t vaddr)
{
	size_t lo = 0, hi = steps->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (steps->list[mid].vaddr < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < steps->n && steps->list[lo].vaddr == vaddr ? &steps->list[lo] : NULL;
}

bool insn_step__goes_on(const struct insn_step *step)
{
	return step->op != INSN_JUMP && step->op != INSN_TAIL && step->op != INSN_SWITCH &&
	       step->op != INSN_RETURN && step->op != INSN_STOP && step->op != INSN_SIGNAL;
}
