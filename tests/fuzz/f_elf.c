// SPDX-License-Identifier: GPL-2.0-or-later
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/elf/elf_file.h"
#include "core/elf/symbols.h"
#include "tests/fuzz/fuzz.h"

#define STEPS	 64
#define FUNCTION "function"

/* Reads the segments, sections and symbols of an ELF file, without DWARF (f_dwarf.c). */
bool target__run(const uint8_t *data, size_t size)
{
	struct symbol_frame frames[SYMBOL_INLINES_MAX];
	struct symbols *symbols = NULL;
	struct elf_file *file = NULL;
	bool named = false;
	uint64_t vaddr, start;
	char buf[16];

	if (elf_file__open_memory(data, size, "fuzz", &file, NULL) != 0)
		return false;
	elf_file__find_symbol(file, FUNCTION, &vaddr, &start);
	if (symbols__new(file, "", &symbols) != 0)
		goto out;
	for (size_t i = 0; i < file->n_segments && i < 8; i++) {
		const struct elf_segment *segment = &file->segments[i];

		for (uint64_t step = 0; step < STEPS; step++) {
			vaddr = segment->vaddr + segment->memsz / STEPS * step;
			elf_file__read(file, vaddr, buf, sizeof(buf));
			if (symbols__resolve(symbols, vaddr, frames, SYMBOL_INLINES_MAX) > 0)
				named |= !strcmp(frames[0].function, FUNCTION);
			symbols__function_start(symbols, vaddr, &start);
			elf_file__offset_to_vaddr(file, segment->offset + step, &start);
		}
	}
out:
	symbols__free(symbols);
	elf_file__free(file);
	return named;
}

/* Writes a seed without symbols of its own, which contains @file, compressed, with symbols. */
static void seed_minidebug(const uint8_t *file, size_t size)
{
	size_t bound = lzma_stream_buffer_bound(size), n = 0, text_size;
	uint8_t *packed = malloc(bound);
	char *text = NULL;
	FILE *source = open_memstream(&text, &text_size);

	if (!packed || !source ||
	    lzma_easy_buffer_encode(0, LZMA_CHECK_NONE, NULL, file, size, packed, &n, bound))
		fuzz__die("the symbols cannot be compressed");
	fputs(".globl main\nmain: .fill 1000, 1, 0x90\n.section .gnu_debugdata, \"\"\n", source);
	for (size_t i = 0; i < n; i++)
		fprintf(source, ".byte %u\n", packed[i]);
	fclose(source);
	free(packed);
	fuzz__seed_elf("-x assembler -s", text);
	free(text);
}

/* Writes a library whose header does not refer to section headers. They are made from its program
 * headers. */
static void seed_without_sections(const char *source)
{
	Elf64_Ehdr header;
	size_t size;
	uint8_t *data = fuzz__compile("-O0 -DCALL= -shared -fPIC", source, &size);

	memcpy(&header, data, sizeof(header));
	header.e_shoff = header.e_shentsize = header.e_shnum = header.e_shstrndx = 0;
	memcpy(data, &header, sizeof(header));
	fuzz__seed(data, size);
	free(data);
}

void target__seeds(void)
{
	static const char source[] = "int external(int x), another(int x);\n"
				     "static int helper(int x) { return x * 3; }\n"
				     "int " FUNCTION "(int x) { return helper(x) + 1; }\n"
				     "int main(void) { return " FUNCTION "(1) CALL; }\n";
	size_t size;
	uint8_t *data;

	fuzz__seed_elf("-O0 -DCALL= -Wl,--build-id", source);
	fuzz__seed_elf("-O0 '-DCALL=+external(another(2))' -shared -fPIC", source);
	data = fuzz__compile("-O0 -DCALL= -fno-asynchronous-unwind-tables", source, &size);
	seed_minidebug(data, size);
	free(data);
	seed_without_sections(source);
}
