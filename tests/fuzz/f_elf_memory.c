// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "core/elf/elf_memory.h"
#include "core/elf/symbols.h"
#include "tests/fuzz/fuzz.h"

#define BASE	 0x7f0000000000ULL
#define FUNCTION "function"

/* Memory that contains the input from BASE on, and may change while it is read. */
struct input {
	const uint8_t *data;
	size_t size;
	unsigned reads;
};

static bool read_input(void *ctx, uint64_t address, void *to, size_t size)
{
	struct input *input = ctx;
	uint64_t at = address - BASE;

	if (address < BASE || at > input->size || size > input->size - at)
		return false;
	memcpy(to, input->data + at, size);
	input->reads++;
	/* If the size is odd, each later read returns another byte. */
	if (size && input->size % 2 && input->reads > 2)
		((uint8_t *)to)[input->reads * 7919 % size] ^= input->reads;
	return true;
}

/* Reads an ELF image in the memory of a process. */
bool target__run(const uint8_t *data, size_t size)
{
	struct input input = { .data = data, .size = size };
	struct elf_memory memory = { .read = read_input, .ctx = &input, .header = BASE };
	struct symbol_frame frames[SYMBOL_INLINES_MAX];
	struct symbols *symbols = NULL;
	struct elf_file *file;
	uint64_t bias, vaddr = 0;
	bool named = false;

	elf_memory__has_code(&memory, BASE + 0x1000);
	if (elf_memory__copy(&memory, "fuzz", NULL, &file, &bias, NULL))
		return false;
	elf_memory__is_same(&memory, file);
	elf_file__find_symbol(file, FUNCTION, &vaddr, NULL);
	if (!symbols__new(file, "", &symbols))
		named = symbols__resolve(symbols, vaddr, frames, SYMBOL_INLINES_MAX) > 0 &&
			!strcmp(frames[0].function, FUNCTION);
	symbols__free(symbols);
	elf_file__free(file);
	return named;
}

/* Lays out a library as a loader does. */
static void seed(const char *flags, const char *source, bool odd)
{
	size_t size, room = 1 << 20;
	uint8_t *data = fuzz__compile(flags, source, &size), *loaded = calloc(1, room + odd);
	Elf64_Ehdr header;
	size_t end = 0;

	if (!loaded)
		fuzz__die("out of memory");
	memcpy(&header, data, sizeof(header));
	for (int i = 0; i < header.e_phnum; i++) {
		Elf64_Phdr phdr;

		memcpy(&phdr, data + header.e_phoff + i * sizeof(phdr), sizeof(phdr));
		if (phdr.p_type != PT_LOAD || phdr.p_vaddr + phdr.p_memsz > room)
			continue;
		memcpy(loaded + phdr.p_vaddr, data + phdr.p_offset, phdr.p_filesz);
		end = phdr.p_vaddr + phdr.p_memsz;
	}
	end += (end % 2 != 0) != odd;
	fuzz__seed(loaded, end);
	free(loaded);
	free(data);
}

void target__seeds(void)
{
	static const char source[] = "int " FUNCTION "(int x) { return x + 1; }\n"
				     "int *pointer, value;\n"
				     "int other(void) { pointer = &value; return 0; }\n";

	seed("-O0 -shared -fPIC", source, false);
	seed("-O0 -shared -fPIC -Wl,--hash-style=sysv", source, false);
}
