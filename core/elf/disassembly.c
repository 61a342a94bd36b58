// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/disassembly.h"

#include <capstone/capstone.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool is_branch(csh handle, const cs_insn *insn)
{
	return insn->id && (cs_insn_group(handle, insn, CS_GRP_CALL) ||
			    cs_insn_group(handle, insn, CS_GRP_JUMP));
}

static uint64_t target_of(csh handle, const cs_insn *insn)
{
	const cs_x86 *x86 = insn->id ? &insn->detail->x86 : NULL;

	if (!is_branch(handle, insn) || x86->op_count != 1 || x86->operands[0].type != X86_OP_IMM)
		return 0;
	return x86->operands[0].imm;
}

static enum flow flow_of(csh handle, const cs_insn *insn)
{
	switch (insn->id) {
	case 0: /* no instruction */
	case X86_INS_HLT:
	case X86_INS_INT3:
	case X86_INS_UD2:
	case X86_INS_JMP:
	case X86_INS_LJMP:
	case X86_INS_RET:
	case X86_INS_RETF:
	case X86_INS_RETFQ:
		return FLOW_LEAVES;
	default:
		return cs_insn_group(handle, insn, CS_GRP_JUMP) ? FLOW_BRANCH : FLOW_ON;
	}
}

static int take_all(csh handle, cs_insn *insn, const uint8_t *code, size_t size, uint64_t address,
		    int (*take)(void *ctx, const struct instruction *instruction), void *ctx)
{
	int ret = 0;

	while (!ret && cs_disasm_iter(handle, &code, &size, &address, insn)) {
		char text[sizeof(insn->mnemonic) + sizeof(insn->op_str) + 1];
		struct instruction instruction = { insn->address, insn->size,
						   target_of(handle, insn), flow_of(handle, insn),
						   text };

		snprintf(text, sizeof(text), "%s%s%s", insn->mnemonic, *insn->op_str ? " " : "",
			 insn->op_str);
		for (size_t n = strlen(text); n && text[n - 1] == ' ';)
			text[--n] = '\0';
		ret = take(ctx, &instruction);
	}
	return ret;
}

int disassembly__run(const void *code, size_t size, uint64_t address,
		     int (*take)(void *ctx, const struct instruction *instruction), void *ctx)
{
	csh handle;
	cs_insn *insn;
	int ret = -ENOMEM;

	if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
		return ret;
	if (cs_option(handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT) == CS_ERR_OK &&
	    cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON) == CS_ERR_OK &&
	    cs_option(handle, CS_OPT_SKIPDATA, CS_OPT_ON) == CS_ERR_OK &&
	    (insn = cs_malloc(handle)) != NULL) {
		ret = take_all(handle, insn, code, size, address, take, ctx);
		cs_free(insn, 1);
	}
	cs_close(&handle);
	return ret;
}
