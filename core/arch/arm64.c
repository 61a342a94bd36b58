// SPDX-License-Identifier: GPL-2.0-or-later
/* arm64: its files, core files and frame descriptions. No kernel half is built for it. */
#include <elf.h>
#include <string.h>

#include "core/arch/arch.h"
#include "core/base/util.h"

/* DWARF for the Arm 64-bit Architecture, 4.1. */
static const char *const names[] = {
	"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",	 "x7",	"x8",  "x9",  "x10",
	"x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
	"x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp",  "pc",
};

static enum arch_relocation relocation(uint32_t type)
{
	switch (type) {
	case R_AARCH64_RELATIVE:
		return ARCH_RELOCATION_RELATIVE;
	case R_AARCH64_ABS64:
		return ARCH_RELOCATION_ABS64;
	case R_AARCH64_GLOB_DAT:
		return ARCH_RELOCATION_GLOB_DAT;
	case R_AARCH64_JUMP_SLOT:
		return ARCH_RELOCATION_JUMP_SLOT;
	case R_AARCH64_IRELATIVE:
		return ARCH_RELOCATION_IRELATIVE;
	case R_AARCH64_TLS_TPREL:
		return ARCH_RELOCATION_TPREL;
	case R_AARCH64_TLS_DTPMOD:
		return ARCH_RELOCATION_DTPMOD;
	case R_AARCH64_TLSDESC:
		return ARCH_RELOCATION_TLSDESC;
	}
	return ARCH_RELOCATION_OTHER;
}

#define TCB_BYTES 16 /* at the thread pointer */

/* Variant I: the program's block follows the thread control block. */
static int64_t thread_offset(uint64_t value, uint64_t size, uint64_t align)
{
	(void)size;
	return (int64_t)((TCB_BYTES + align - 1) / align * align + value);
}

/* Instructions, with the bits that hold an operand cleared. */
#define BTI_C	     0xd503245fU
#define ADRP_X16     0x90000010U /* immediate: bits 5-23 above 29-30, in pages of 4 KiB */
#define ADRP_MASK    0x9f00001fU
#define LDR_X17_X16  0xf9400211U /* immediate: bits 10-21, in words of 8 bytes */
#define LDR_MASK     0xffc003ffU
#define INSN_BYTES   4
#define STUB_BYTES   16
#define PAGE_BITS    12
#define ADRP_IMM_TOP 20 /* sign bit of the immediate */

/* [bti c]; adrp x16, page; ldr x17, [x16, #offset]; add x16, x16, #offset; br x17 */
static uint64_t plt_slot(const uint8_t *code, size_t len, uint64_t vaddr, size_t *ret_size)
{
	uint32_t insns[2] = { 0 };
	uint64_t pages;
	size_t at = 0;

	*ret_size = INSN_BYTES;
	if (len >= INSN_BYTES)
		memcpy(insns, code, INSN_BYTES);
	if (insns[0] == BTI_C)
		at = INSN_BYTES;
	if (len < at + STUB_BYTES)
		return 0;
	memcpy(insns, code + at, sizeof(insns));
	if ((insns[0] & ADRP_MASK) != ADRP_X16 || (insns[1] & LDR_MASK) != LDR_X17_X16)
		return 0;
	pages = (insns[0] >> 5 & 0x7ffff) << 2 | (insns[0] >> 29 & 3);
	pages |= -(pages >> ADRP_IMM_TOP & 1) << ADRP_IMM_TOP;
	*ret_size = at + STUB_BYTES;
	return ((vaddr + at) >> PAGE_BITS << PAGE_BITS) + (pages << PAGE_BITS) +
	       8 * (insns[1] >> 10 & 0xfff);
}

/* pr_reg is the kernel's struct user_pt_regs: x0 to x30, sp, pc and pstate. */
#define STATUS_WORDS 34

static bool core_note(uint32_t type, const void *desc, size_t size, struct arch_thread *thread)
{
	uint64_t words[STATUS_WORDS];
	int32_t call;

	if (type == NT_PRSTATUS && arch__read_status(desc, size, thread, words, STATUS_WORDS)) {
		memcpy(thread->regs, words, ARRAY_SIZE(names) * sizeof(*words));
		return true;
	}
	if (type == NT_ARM_TLS && size >= sizeof(thread->thread_pointer))
		memcpy(&thread->thread_pointer, desc, sizeof(thread->thread_pointer));
	if (type == NT_ARM_SYSTEM_CALL && size >= sizeof(call)) {
		memcpy(&call, desc, sizeof(call));
		thread->syscall = call;
	}
	return false;
}

const struct arch arch_arm64 = {
	.name = "arm64",
	.machine = EM_AARCH64,
	.fp = 29,
	.aux = 30, /* the link register */
	.sp = 31,
	.pc = 32,
	.ra = 30,
	.n_regs = ARRAY_SIZE(names),
	.register_names = names,
	.cfi_ignored = 0x2d, /* DW_CFA_AARCH64_negate_ra_state */
	.marks_code = true,
	.relocation = relocation,
	.thread_offset = thread_offset,
	.plt_step = INSN_BYTES,
	.plt_bytes_max = INSN_BYTES + STUB_BYTES,
	.plt_slot = plt_slot,
	.core_note = core_note,
};
