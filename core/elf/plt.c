// SPDX-License-Identifier: GPL-2.0-or-later
/* Names the stubs through which code calls functions of other files. A sample in a stub has no
 * symbol, because the linker generates stubs without one. Each stub jumps through a slot of the
 * global offset table. A relocation names the function whose address the dynamic linker stores in
 * that slot. So this file gathers slots by address from the relocations, and decodes each stub's
 * jump instruction to find its slot. The name is that of the function with "@plt" appended, as in
 * binutils. A stub of an indirect function of the file's own (IRELATIVE) has its resolver's name.
 */
#include "core/elf/plt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/arch/arch.h"
#include "core/base/quota.h"
#include "core/base/sort.h"
#include "core/base/util.h"
#include "core/elf/elf_symbols.h"

struct slot { /* a slot of the global offset table */
	uint64_t vaddr;
	const char *name;
};

struct slots {
	struct slot *slots;
	size_t n, cap;
};

static const char *name_of(const struct arch *arch, const GElf_Rela *rela,
			   const struct elf_symbols *dynsym, const struct symtab *symtab)
{
	const struct symbol *resolver;
	GElf_Sym sym;

	switch (arch->relocation(GELF_R_TYPE(rela->r_info))) {
	case ARCH_RELOCATION_JUMP_SLOT:
	case ARCH_RELOCATION_GLOB_DAT:
		return dynsym->n ? elf_symbols__get(dynsym, GELF_R_SYM(rela->r_info), &sym) : NULL;
	case ARCH_RELOCATION_IRELATIVE:
		resolver = symtab__find(symtab, rela->r_addend);
		return resolver ? resolver->name : NULL;
	default:
		return NULL;
	}
}

static int add_slots(struct slots *slots, const struct elf_file *file, const char *section,
		     const struct elf_symbols *dynsym, const struct symtab *symtab)
{
	Elf_Data *data = elf_file__section(file, section, NULL);
	size_t n = data && data->d_type == ELF_T_RELA ? data->d_size / sizeof(Elf64_Rela) : 0;

	for (size_t i = 0; i < n; i++) {
		const char *name;
		GElf_Rela rela;

		int rc = quota__look_at(i);

		if (rc)
			return rc;
		memcpy(&rela, (const Elf64_Rela *)data->d_buf + i, sizeof(rela));
		name = name_of(file->arch, &rela, dynsym, symtab);
		if (!name || !name[0])
			continue;
		if (array__reserve(&slots->slots, &slots->cap, slots->n + 1,
				   sizeof(*slots->slots)) != 0)
			return -ENOMEM;
		slots->slots[slots->n++] = (struct slot) { rela.r_offset, name };
	}
	return 0;
}

static int by_vaddr(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static int add_stubs(struct symtab *ret, const struct slots *slots, const struct elf_file *file,
		     const char *section)
{
	GElf_Shdr shdr;
	Elf_Data *data = elf_file__section(file, section, &shdr);
	const struct arch *arch = file->arch;
	size_t entry = data && shdr.sh_entsize == 8 ? 8 : 16, step = arch->plt_step ?: entry;
	size_t max = arch->plt_step ? arch->plt_bytes_max : entry, size;

	for (size_t at = 0; data && at < data->d_size && data->d_size - at >= step; at += size) {
		struct slot key = {
			.vaddr = arch->plt_slot((uint8_t *)data->d_buf + at,
						min_of(max, data->d_size - at), shdr.sh_addr + at,
						&size),
		};
		const struct slot *slot =
			bsearch(&key, slots->slots, slots->n, sizeof(key), by_vaddr);

		int rc = quota__look_at(at / step);

		if (rc)
			return rc;
		if (!slot)
			continue;
		rc = symtab__add(ret, &(struct symbol) { .start = shdr.sh_addr + at,
							 .end = shdr.sh_addr + at + size,
							 .name = slot->name,
							 .sized = true,
							 .is_plt = true });
		if (rc)
			return rc;
	}
	return 0;
}

const char *const plt__sections[PLT_SECTIONS] = { ".plt", ".plt.sec", ".plt.got" };

int plt__add(struct symtab *ret, const struct elf_file *file, const struct symtab *symtab)
{
	struct elf_symbols dynsym = { 0 };
	struct slots slots = { 0 };
	int rc;

	ret->account = file->account;
	elf_symbols__open(file, ".dynsym", &dynsym);
	rc = add_slots(&slots, file, ".rela.plt", &dynsym, symtab);
	if (!rc)
		rc = add_slots(&slots, file, ".rela.dyn", &dynsym, symtab);
	if (!rc)
		rc = sort__array(slots.slots, slots.n, sizeof(*slots.slots), by_vaddr);
	for (size_t i = 0; !rc && slots.n && i < PLT_SECTIONS; i++)
		rc = add_stubs(ret, &slots, file, plt__sections[i]);
	free(slots.slots);
	return rc;
}

#define STUB_BYTES_MAX 32

static uint64_t slot_of(const struct elf_file *file, uint64_t vaddr)
{
	uint8_t code[STUB_BYTES_MAX];
	size_t size = min_of(sizeof(code), (size_t)file->arch->plt_bytes_max), ignored;

	while (size && elf_file__read(file, vaddr, code, size))
		size--; /* the last stub of the segment may be shorter */
	return file->arch->plt_slot(code, size, vaddr, &ignored);
}

bool plt__is_stub(const struct elf_file *file, uint64_t vaddr)
{
	return slot_of(file, vaddr) != 0;
}

uint64_t plt__own_function(const struct elf_file *file, uint64_t vaddr)
{
	static const char *const sections[] = { ".rela.plt", ".rela.dyn" };
	uint64_t slot = slot_of(file, vaddr);
	struct elf_symbols dynsym = {};

	if (!slot || !elf_symbols__open(file, ".dynsym", &dynsym))
		return 0;
	for (size_t k = 0; k < ARRAY_SIZE(sections); k++) {
		Elf_Data *data = elf_file__section(file, sections[k], NULL);
		Elf64_Rela rela;

		if (data && data->d_type != ELF_T_RELA)
			continue;
		for (size_t i = 0; elf_file__entry(data, i, &rela, sizeof(rela)); i++) {
			enum arch_relocation kind;
			GElf_Sym sym;

			if (rela.r_offset != slot)
				continue;
			kind = file->arch->relocation(GELF_R_TYPE(rela.r_info));
			if ((kind != ARCH_RELOCATION_JUMP_SLOT &&
			     kind != ARCH_RELOCATION_GLOB_DAT) ||
			    !elf_symbols__get(&dynsym, GELF_R_SYM(rela.r_info), &sym) ||
			    sym.st_shndx == SHN_UNDEF || GELF_ST_TYPE(sym.st_info) != STT_FUNC)
				return 0;
			return sym.st_value;
		}
	}
	return 0;
}
