// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/unwind/unwind_table.h"
#include "tests/fuzz/fuzz.h"

/* Makes a table of the call frame information of an ELF file, or an error. */
bool target__run(const uint8_t *data, size_t size)
{
	struct unwind_table table = { 0 };
	struct elf_file *file = NULL;
	bool found = false;

	if (elf_file__open_memory(data, size, "fuzz", &file, NULL) == 0 &&
	    unwind_table__build(file, &table, NULL) == 0 && table.n_pages) {
		for (uint64_t at = 0; at < UNWIND_PAGE_BYTES; at += 16)
			found |= unwind_table__find(&table, table.vaddr_start + at)->kind ==
				 UNWIND_REG;
		unwind_table__find(&table, table.vaddr_start + table.n_rows);
	}
	unwind_table__done(&table);
	elf_file__free(file);
	return found;
}

void target__seeds(void)
{
	static const char source[] =
		"int __attribute__((noinline)) other(int x, char *s)\n"
		"{ volatile char a[x]; a[x / 2] = 1; return s[x] + a[x / 3]; }\n"
		"int main(int argc, char **argv) { return other(argc, *argv) + 1; }\n";

	fuzz__seed_elf("-s", source);
	fuzz__seed_elf("-g -fno-asynchronous-unwind-tables", source); /* .debug_frame */
}
