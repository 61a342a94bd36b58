// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/arch/arch.h"

#include <elf.h>
#include <string.h>

#include "core/base/util.h"

/* struct elf_prstatus_common of the kernel (include/linux/elfcore.h), up to pr_reg. */
#define STATUS_SIGNAL 12
#define STATUS_TID    32
#define STATUS_REGS   112

static const struct arch *const all[] = { &arch_x86_64, &arch_arm64 };

const struct arch *arch__of_machine(unsigned machine)
{
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i]->machine == machine)
			return all[i];
	return NULL;
}

const char *arch__describe(unsigned machine)
{
	switch (machine) {
	case EM_X86_64:
		return "an x86-64";
	case EM_386:
		return "a 32-bit x86";
	case EM_AARCH64:
		return "an arm64";
	case EM_ARM:
		return "an arm";
	case EM_RISCV:
		return "a RISC-V";
	case EM_PPC64:
		return "a POWER";
	case EM_S390:
		return "an s390";
	default:
		return "another";
	}
}

bool arch__read_status(const void *desc, size_t size, struct arch_thread *ret, uint64_t *regs,
		       size_t n_regs)
{
	const char *status = desc;
	int16_t signal;

	if (size < STATUS_REGS + n_regs * sizeof(*regs))
		return false;
	*ret = (struct arch_thread) { .syscall = -1 };
	memcpy(&signal, status + STATUS_SIGNAL, sizeof(signal));
	ret->signal = signal;
	memcpy(&ret->tid, status + STATUS_TID, sizeof(ret->tid));
	memcpy(regs, status + STATUS_REGS, n_regs * sizeof(*regs));
	return true;
}
