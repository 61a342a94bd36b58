// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/elf_symbols.h"

#include <limits.h>
#include <string.h>

#include "core/base/util.h"
#include "core/elf/elf_section.h"

Elf_Data *elf_strings__open(const struct elf_file *file, size_t index)
{
	struct elf_section section;
	Elf_Data *data;

	if (elf_section__at(file, index, &section) || section.shdr.sh_type != SHT_STRTAB ||
	    section.stored)
		return NULL;
	data = elf_section__data(file, &section);
	return data && !((char *)data->d_buf)[data->d_size - 1] ? data : NULL;
}

const char *elf_strings__get(const Elf_Data *strings, size_t offset)
{
	return strings && offset < strings->d_size ? (char *)strings->d_buf + offset : NULL;
}

bool elf_symbols__open(const struct elf_file *file, const char *section, struct elf_symbols *ret)
{
	GElf_Shdr shdr;
	Elf_Data *data = elf_file__section(file, section, &shdr);
	Elf_Data *strings;

	if (!data || data->d_type != ELF_T_SYM)
		return false;
	strings = elf_strings__open(file, shdr.sh_link);
	if (!strings)
		return false;
	ret->data = data;
	ret->strings = strings;
	ret->n = min_of(data->d_size / sizeof(Elf64_Sym), (size_t)INT_MAX);
	return true;
}

const char *elf_symbols__get(const struct elf_symbols *symbols, size_t i, GElf_Sym *ret)
{
	if (i >= symbols->n)
		return NULL;
	memcpy(ret, (const Elf64_Sym *)symbols->data->d_buf + i, sizeof(*ret));
	return elf_strings__get(symbols->strings, ret->st_name);
}
