// SPDX-License-Identifier: GPL-2.0-or-later
#include <stddef.h>
#include <stdint.h>

#include "core/elf_file.h"
#include "core/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbol_frame frames[SYMBOL_INLINES_MAX];
	struct symbols *symbols = NULL;
	struct elf_file *file = NULL;
	uint64_t vaddr;
	char buf[16];

	if (elf_file__open_memory(data, size, "fuzz", &file, NULL) != 0)
		return 0;
	elf_file__find_symbol(file, "main", &vaddr, NULL);
	if (symbols__new(file, "", &symbols) != 0)
		goto out;
	for (size_t i = 0; i < file->n_segments && i < 8; i++) {
		const struct elf_segment *segment = &file->segments[i];

		for (uint64_t step = 0; step < 64; step++) {
			vaddr = segment->vaddr + segment->memsz / 64 * step;
			elf_file__read(file, vaddr, buf, sizeof(buf));
			symbols__resolve(symbols, vaddr, frames, SYMBOL_INLINES_MAX);
		}
	}
out:
	symbols__free(symbols);
	elf_file__free(file);
	return 0;
}
