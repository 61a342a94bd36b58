// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/replay/stubs.h"

#include <string.h>

#include "core/base/util.h"

#define STUB_BYTES 16

/* Returns the slot that a stub jumps through, [endbr64] [bnd] jmp *disp32(%rip), or 0. */
static uint64_t slot_of(const unsigned char *stub, uint64_t size, uint64_t vaddr)
{
	int32_t distance;

	for (uint64_t at = 0; at + 6 <= size; at++) {
		if (stub[at] != 0xff || stub[at + 1] != 0x25)
			continue;
		memcpy(&distance, stub + at + 2, sizeof(distance));
		return vaddr + at + 6 + distance;
	}
	return 0;
}

static int keep_symbol(const struct elf_view *view, uint64_t index, struct spans *pieces)
{
	const Elf64_Shdr *table = elf_view__find(view, ".dynsym");
	const Elf64_Shdr *names = elf_view__find(view, ".dynstr");
	const Elf64_Sym *symbol = table && index < table->sh_size / sizeof(*symbol)
					  ? (const void *)(view->bytes + table->sh_offset)
					  : NULL;
	uint64_t name;
	int ret;

	if (!symbol || !names || symbol[index].st_name >= names->sh_size)
		return 0;
	name = names->sh_offset + symbol[index].st_name;
	ret = spans__add(pieces, table->sh_offset + index * sizeof(*symbol),
			 table->sh_offset + (index + 1) * sizeof(*symbol));
	return ret ? ret
		   : spans__add(pieces, name,
				name + strnlen((const char *)view->bytes + name,
					       names->sh_offset + names->sh_size - name));
}

static int keep_slot(const struct elf_view *view, uint64_t slot, struct spans *pieces)
{
	static const char *const sections[] = { ".rela.plt", ".rela.dyn" };
	int ret = 0;

	for (size_t k = 0; k < ARRAY_SIZE(sections); k++) {
		const Elf64_Shdr *shdr = elf_view__find(view, sections[k]);
		const Elf64_Rela *rela =
			shdr ? (const void *)(view->bytes + shdr->sh_offset) : NULL;

		for (size_t i = 0; !ret && rela && i < shdr->sh_size / sizeof(*rela); i++) {
			uint64_t at = shdr->sh_offset + i * sizeof(*rela);

			if (rela[i].r_offset != slot)
				continue;
			ret = spans__add(pieces, at, at + sizeof(*rela));
			if (!ret)
				ret = keep_symbol(view, ELF64_R_SYM(rela[i].r_info), pieces);
		}
	}
	return ret;
}

int stubs__keep(const struct elf_view *view, const struct spans *code, struct spans *pieces)
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got" };
	int ret = 0;

	for (size_t k = 0; k < ARRAY_SIZE(sections); k++) {
		const Elf64_Shdr *shdr = elf_view__find(view, sections[k]);
		uint64_t step = shdr && shdr->sh_entsize == 8 ? 8 : STUB_BYTES;

		for (uint64_t at = 0; !ret && shdr && at + step <= shdr->sh_size; at += step) {
			uint64_t vaddr = shdr->sh_addr + at, offset = shdr->sh_offset + at;

			if (!spans__meet(code, vaddr, vaddr + step))
				continue;
			ret = spans__add(pieces, offset, offset + step);
			if (!ret)
				ret = keep_slot(view, slot_of(view->bytes + offset, step, vaddr),
						pieces);
		}
	}
	return ret;
}
