// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf_file.h"
#include "core/symbols.h"
#include "tests/fuzz/fuzz.h"

#define STEPS 64

/* An ELF file: its segments, sections and symbols, without DWARF (f_dwarf.c). */
bool target__run(const uint8_t *data, size_t size)
{
	struct symbol_frame frames[SYMBOL_INLINES_MAX];
	struct symbols *symbols = NULL;
	struct elf_file *file = NULL;
	bool found = false, named = false;
	uint64_t vaddr, start;
	char buf[16];

	if (elf_file__open_memory(data, size, "fuzz", &file, NULL) != 0)
		return false;
	if (elf_file__find_symbol(file, "main", &vaddr, &start) == 0)
		found = elf_file__read(file, vaddr, buf, 1) == 0;
	if (symbols__new(file, "", &symbols) != 0)
		goto out;
	for (size_t i = 0; i < file->n_segments && i < 8; i++) {
		const struct elf_segment *segment = &file->segments[i];

		for (uint64_t step = 0; step < STEPS; step++) {
			vaddr = segment->vaddr + segment->memsz / STEPS * step;
			elf_file__read(file, vaddr, buf, sizeof(buf));
			named |= symbols__resolve(symbols, vaddr, frames, SYMBOL_INLINES_MAX) > 0;
			symbols__function_start(symbols, vaddr, &start);
			elf_file__offset_to_vaddr(file, segment->offset + step, &start);
		}
	}
out:
	symbols__free(symbols);
	elf_file__free(file);
	return found && named;
}

void target__seeds(void)
{
	static const char source[] = "static int helper(int x) { return x * 3; }\n"
				     "int other(int x) { return helper(x) + 1; }\n"
				     "int main(void) { return other(1); }\n";

	fuzz__seed_elf("-O0 -Wl,--build-id", source);
	fuzz__seed_elf("-O0 -shared -fPIC -fno-asynchronous-unwind-tables", source);
}
