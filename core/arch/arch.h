/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CORE_ARCH_H
#define BRAID_CORE_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A machine as a value: the machine of a file, a core file or a recorded target. bpf/arch has the
 * machine that the kernel half is built for. A new machine is a file like x86_64.c and a row in
 * arch.c. All input is untrusted. */

#define ARCH_REGS_MAX 33

/* effect of a relocation on its word */
enum arch_relocation {
	ARCH_RELOCATION_OTHER,
	ARCH_RELOCATION_RELATIVE,  /* load address + addend */
	ARCH_RELOCATION_ABS64,	   /* address of a symbol + addend */
	ARCH_RELOCATION_GLOB_DAT,  /* as ABS64, in the global offset table */
	ARCH_RELOCATION_JUMP_SLOT, /* as ABS64, for a stub of the PLT */
	ARCH_RELOCATION_IRELATIVE, /* result of the function at load address + addend */
	ARCH_RELOCATION_TPREL,	   /* offset of a thread-local variable from the thread pointer */
	ARCH_RELOCATION_DTPMOD,	   /* number of the module of a thread-local variable */
	ARCH_RELOCATION_TLSDESC,   /* descriptor of a thread-local variable: two words */
};

/* a thread of a core file */
struct arch_thread {
	uint32_t tid;
	int signal;		      /* signal that ended the process; 0: none */
	int64_t syscall;	      /* system call number; below 0: in no system call */
	uint64_t thread_pointer;      /* address; 0: unknown */
	uint64_t regs[ARCH_REGS_MAX]; /* by DWARF number */
};

struct arch {
	const char *name; /* "x86-64" */
	uint16_t machine; /* EM_* */
	bool is_ours;	  /* the kernel half of this build unwinds it */

	/* DWARF numbers. @aux is the register of unwind_rule.aux_words. @ra is the column of the
	 * return address. It equals @aux where calls leave the return address in a register. */
	uint8_t fp, aux, sp, pc, ra, n_regs;
	const char *const *register_names; /* n_regs */

	/* Call frame instruction that only this machine has and that changes no rule; 0: none. On
	 * arm64 it switches the signing of the return address on or off. */
	uint8_t cfi_ignored;

	bool marks_code; /* symbols $x and $d mark where code and data begin, and name no function
			  */

	enum arch_relocation (*relocation)(uint32_t type);

	/* Returns the distance from the thread pointer of the program's own thread-local variable
	 * at @value in its block of @size bytes (PT_TLS). @align is at least 1. */
	int64_t (*thread_offset)(uint64_t value, uint64_t size, uint64_t align);

	/* Distance between addresses at which stubs of a PLT may begin; 0: the size of an entry,
	 * which the section states. */
	uint8_t plt_step, plt_bytes_max;
	/* Returns the address of the slot of the global offset table that the stub @code at @vaddr
	 * jumps through. Returns 0 if @code is no stub. *@ret_size is the size of the stub. */
	uint64_t (*plt_slot)(const uint8_t *code, size_t len, uint64_t vaddr, size_t *ret_size);

	/* Reads a note of a core file. NT_PRSTATUS begins a thread and returns true; other notes
	 * add to the thread before them. */
	bool (*core_note)(uint32_t type, const void *desc, size_t size, struct arch_thread *thread);
};

extern const struct arch arch_x86_64, arch_arm64;

/* Returns the machine with this EM_* number, or NULL if braid cannot read its files. */
const struct arch *arch__of_machine(unsigned machine);

/* Returns the name of any machine with its article, "an arm64"; "another" if unknown. */
const char *arch__describe(unsigned machine);

/* Reads a thread's registers and IDs from NT_PRSTATUS, whose layout is the same on all 64-bit
 * machines, except for the number of words in @regs. Returns false if @size is too small. */
bool arch__read_status(const void *desc, size_t size, struct arch_thread *ret, uint64_t *regs,
		       size_t n_regs);

#endif
