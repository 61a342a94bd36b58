// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/thread_variable.h"

#include <errno.h>
#include <string.h>

#include "core/arch/arch.h"
#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/elf/elf_symbols.h"

/* The block of thread-local variables that a file claims. */
static bool find_block(const struct elf_file *file, GElf_Phdr *ret, bool *ret_program)
{
	bool found = false;
	GElf_Phdr phdr;
	size_t n = 0;

	*ret_program = file->type == ET_EXEC;
	if (elf_getphdrnum(file->elf, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(file->elf, i, &phdr))
			continue;
		*ret_program |= phdr.p_type == PT_INTERP;
		if (phdr.p_type == PT_TLS) {
			*ret = phdr;
			found = true;
		}
	}
	return found;
}

static int find_symbol(const struct elf_symbols *symbols, const char *name, size_t *ret_index,
		       uint64_t *ret_value)
{
	GElf_Sym symbol;

	for (size_t i = 1; i < symbols->n; i++) {
		const char *other = elf_symbols__get(symbols, i, &symbol);

		if (quota__look_at(i))
			return -ENOENT;
		if (!other || symbol.st_shndx == SHN_UNDEF ||
		    GELF_ST_TYPE(symbol.st_info) != STT_TLS || strcmp(other, name) != 0)
			continue;
		*ret_index = i;
		*ret_value = symbol.st_value;
		return 0;
	}
	return -ENOENT;
}

static bool access_of(enum arch_relocation relocation, enum thread_variable_access *ret)
{
	switch (relocation) {
	case ARCH_RELOCATION_TPREL:
		*ret = THREAD_VARIABLE_SLOT;
		return true;
	case ARCH_RELOCATION_DTPMOD:
		*ret = THREAD_VARIABLE_INDEX;
		return true;
	case ARCH_RELOCATION_TLSDESC:
		*ret = THREAD_VARIABLE_DESCRIPTOR;
		return true;
	default:
		return false;
	}
}

/* Returns true if the slot of a relocation is that of the variable. If the file binds the variable
 * to itself (-Bsymbolic), the relocation names no symbol: the addend, or the word behind the
 * module's number, is the variable's value. */
static bool is_slot_of(const struct elf_file *file, const GElf_Rela *rela,
		       enum thread_variable_access access, size_t index, uint64_t value)
{
	uint64_t offset;

	if (GELF_R_SYM(rela->r_info))
		return GELF_R_SYM(rela->r_info) == index;
	if (access != THREAD_VARIABLE_INDEX)
		return (uint64_t)rela->r_addend == value;
	return !elf_file__read(file, rela->r_offset + 8, &offset, sizeof(offset)) &&
	       offset == value;
}

static int find_slot(const struct elf_file *file, const char *section, size_t index, uint64_t value,
		     struct thread_variable *ret)
{
	const Elf_Data *data = elf_file__section(file, section, NULL);
	enum thread_variable_access access;
	GElf_Rela rela;

	if (!data || data->d_type != ELF_T_RELA)
		return -ENOENT;
	for (size_t i = 0; elf_file__entry(data, i, &rela, sizeof(rela)); i++) {
		if (quota__look_at(i))
			return -ENOENT;
		if (!access_of(file->arch->relocation(GELF_R_TYPE(rela.r_info)), &access) ||
		    !is_slot_of(file, &rela, access, index, value))
			continue;
		*ret = (struct thread_variable) { .access = access, .slot_vaddr = rela.r_offset };
		return 0;
	}
	return -ENOENT;
}

int thread_variable__find(const struct elf_file *file, const char *name,
			  struct thread_variable *ret)
{
	struct elf_symbols symbols;
	bool is_program;
	GElf_Phdr block = {};
	uint64_t value;
	size_t index;

	if (!find_block(file, &block, &is_program) ||
	    !elf_symbols__open(file, ".dynsym", &symbols) ||
	    find_symbol(&symbols, name, &index, &value))
		return -ENOENT;
	if (!find_slot(file, ".rela.dyn", index, value, ret) ||
	    !find_slot(file, ".rela.plt", index, value, ret))
		return 0;
	if (!is_program || value >= block.p_memsz)
		return -ENOENT;
	*ret = (struct thread_variable) { .access = THREAD_VARIABLE_FIXED,
					  .offset = file->arch->thread_offset(value, block.p_memsz,
									      block.p_align ?: 1) };
	return 0;
}
