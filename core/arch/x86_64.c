// SPDX-License-Identifier: GPL-2.0-or-later
#include <elf.h>
#include <string.h>

#include "core/arch/arch.h"
#include "core/base/util.h"

/* System V ABI AMD64, figure 3.36. */
static const char *const names[] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
				     "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip" };

static enum arch_relocation relocation(uint32_t type)
{
	switch (type) {
	case R_X86_64_RELATIVE:
		return ARCH_RELOCATION_RELATIVE;
	case R_X86_64_64:
		return ARCH_RELOCATION_ABS64;
	case R_X86_64_GLOB_DAT:
		return ARCH_RELOCATION_GLOB_DAT;
	case R_X86_64_JUMP_SLOT:
		return ARCH_RELOCATION_JUMP_SLOT;
	case R_X86_64_IRELATIVE:
		return ARCH_RELOCATION_IRELATIVE;
	case R_X86_64_TPOFF64:
		return ARCH_RELOCATION_TPREL;
	case R_X86_64_DTPMOD64:
		return ARCH_RELOCATION_DTPMOD;
	case R_X86_64_TLSDESC:
		return ARCH_RELOCATION_TLSDESC;
	}
	return ARCH_RELOCATION_OTHER;
}

/* Variant II: the program's block ends at the thread pointer. */
static int64_t thread_offset(uint64_t value, uint64_t size, uint64_t align)
{
	return (int64_t)(value - (size + align - 1) / align * align);
}

/* [endbr64] [bnd] jmp *disp32(%rip) */
static uint64_t plt_slot(const uint8_t *code, size_t len, uint64_t vaddr, size_t *ret_size)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t at = 0;
	int32_t disp;

	*ret_size = len;
	if (len >= sizeof(endbr64) && !memcmp(code, endbr64, sizeof(endbr64)))
		at += sizeof(endbr64);
	if (at < len && code[at] == 0xf2)
		at++;
	if (len - at < 6 || code[at] != 0xff || code[at + 1] != 0x25)
		return 0;
	memcpy(&disp, code + at + 2, sizeof(disp));
	return vaddr + at + 6 + disp;
}

/* pr_reg is the kernel's struct user_regs_struct. */
#define STATUS_WORDS	  27
#define STATUS_SYSCALL	  15 /* orig_rax */
#define STATUS_THREAD_PTR 21 /* fs_base */

static bool core_note(uint32_t type, const void *desc, size_t size, struct arch_thread *thread)
{
	static const uint8_t order[] = { 10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16 };
	uint64_t words[STATUS_WORDS];

	if (type != NT_PRSTATUS || !arch__read_status(desc, size, thread, words, STATUS_WORDS))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		thread->regs[i] = words[order[i]];
	thread->syscall = (int64_t)words[STATUS_SYSCALL];
	thread->thread_pointer = words[STATUS_THREAD_PTR];
	return true;
}

const struct arch arch_x86_64 = {
	.name = "x86-64",
	.machine = EM_X86_64,
#ifdef __x86_64__
	.is_ours = true,
#endif
	.fp = 6,
	.aux = 3,
	.sp = 7,
	.pc = 16,
	.ra = 16,
	.n_regs = ARRAY_SIZE(names),
	.register_names = names,
	.relocation = relocation,
	.thread_offset = thread_offset,
	.plt_bytes_max = 16,
	.plt_slot = plt_slot,
	.core_note = core_note,
};
