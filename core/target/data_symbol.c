// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/data_symbol.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/util.h"
#include "core/elf/elf_symbols.h"
#include "core/target/images.h"

/* Returns true if a loaded segment of the file contains @vaddr. */
static bool is_loaded(const struct elf_file *file, uint64_t vaddr)
{
	GElf_Phdr phdr;
	size_t n = 0;

	if (elf_getphdrnum(file->elf, &n))
		return false;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(file->elf, i, &phdr) && phdr.p_type == PT_LOAD &&
		    vaddr - phdr.p_vaddr < phdr.p_memsz)
			return true;
	return false;
}

static int find(const struct elf_file *file, const char *section, uint64_t vaddr, char *ret,
		size_t size)
{
	const char *slash = file->path ? strrchr(file->path, '/') : NULL, *name;
	const char *base = slash ? slash + 1 : file->path ? file->path : "";
	struct elf_symbols symbols;
	GElf_Sym symbol;

	if (!elf_symbols__open(file, section, &symbols))
		return -ENOENT;
	for (size_t i = 0; i < symbols.n; i++) {
		name = elf_symbols__get(&symbols, i, &symbol);
		if (!name || symbol.st_shndx == SHN_UNDEF ||
		    GELF_ST_TYPE(symbol.st_info) != STT_OBJECT ||
		    vaddr - symbol.st_value >= symbol.st_size)
			continue;
		if (vaddr == symbol.st_value)
			snprintf(ret, size, "%.60s (%.40s)", name, base);
		else
			snprintf(ret, size, "%.60s+0x%" PRIx64 " (%.40s)", name,
				 vaddr - symbol.st_value, base);
		return 0;
	}
	return -ENOENT;
}

int data_symbol__of(const struct process *process, uint64_t address, char *ret, size_t size)
{
	for (size_t i = 0; i < process->n_mapped; i++) {
		const struct mapped *mapped = &process->mapped[i];
		uint64_t vaddr = address - mapped->bias;

		if (!mapped->image || !mapped->image->file || !mapped->image->file->elf ||
		    !is_loaded(mapped->image->file, vaddr))
			continue;
		if (!find(mapped->image->file, ".symtab", vaddr, ret, size) ||
		    !find(mapped->image->file, ".dynsym", vaddr, ret, size))
			return 0;
	}
	return -ENOENT;
}
