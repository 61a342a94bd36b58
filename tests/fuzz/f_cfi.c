// SPDX-License-Identifier: GPL-2.0-or-later
#include <stddef.h>
#include <stdint.h>

#include "core/unwind_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An ELF file: its call frame information becomes a table or an error. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_file *file = NULL;
	struct unwind_table table = { 0 };

	if (elf_file__open_memory(data, size, "fuzz", &file, NULL) == 0 &&
	    unwind_table__build(file, &table, NULL) == 0)
		unwind_table__find(&table, table.vaddr_start + table.n_rows);
	unwind_table__done(&table);
	elf_file__free(file);
	return 0;
}
