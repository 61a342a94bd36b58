// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/symbols.h"
#include "tests/fuzz/fuzz.h"

#define STEPS 32

/* Reads names, lines and inlined calls of an ELF file with debug information. */
bool target__run(const uint8_t *data, size_t size)
{
	struct symbol_frame frames[SYMBOL_INLINES_MAX];
	bool inlined = false, has_line = false;
	struct symbols *symbols = NULL;
	struct elf_file *file = NULL;

	if (elf_file__open_memory(data, size, "fuzz", &file, NULL) != 0)
		return false;
	if (symbols__new(file, "", &symbols) != 0)
		goto out;
	for (size_t i = 0; i < file->n_segments && i < 8; i++) {
		const struct elf_segment *segment = &file->segments[i];

		if (!segment->exec)
			continue;
		for (uint64_t step = 0; step < STEPS; step++) {
			uint64_t vaddr = segment->vaddr + segment->memsz / STEPS * step;
			int n = symbols__resolve(symbols, vaddr, frames, SYMBOL_INLINES_MAX);

			inlined |= n > 1 && frames[0].inlined && frames[0].function[0];
			has_line |= n > 1 && frames[0].file && frames[0].line && frames[1].line;
		}
	}
out:
	symbols__free(symbols);
	elf_file__free(file);
	return inlined && has_line;
}

/* Inlines enough calls for one of the requested addresses to lie in them. */
static const char source[] = "volatile int sink;\n"
			     "static inline __attribute__((always_inline)) void inner(int x)\n"
			     "{ sink += x * 3; sink ^= x; sink += x * 5; sink ^= x + 1; }\n"
			     "static inline __attribute__((always_inline)) void outer(int x)\n"
			     "{ inner(x + 1); inner(x * 7); inner(x - 3); inner(x ^ 9); }\n"
			     "int main(int argc, char **argv)\n"
			     "{ outer(argc); outer(argc + 2); outer(argc * 3); return 0; }\n";

void target__seeds(void)
{
	fuzz__seed_elf("-g -gdwarf-5 -fno-asynchronous-unwind-tables", source);
	fuzz__seed_elf("-g -gdwarf-4 -gstrict-dwarf -fno-asynchronous-unwind-tables", source);
	fuzz__seed_elf("-g -gz=zlib -fno-asynchronous-unwind-tables", source);
	fuzz__seed_elf("-g -Wl,--compress-debug-sections=zlib-gnu -fno-asynchronous-unwind-tables",
		       source);
}
