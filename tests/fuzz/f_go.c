// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <string.h>

#include "core/unwind/unwind_table.h"
#include "runtimes/go/go_names.h"
#include "runtimes/go/go_rows.h"
#include "tests/fuzz/fuzz.h"

/* An ELF file with Go's table of functions: rows by which its code is unwound, and names. */
static bool unwinds(const struct elf_file *file, uint64_t vaddr)
{
	struct unwind_table table = { 0 };
	bool found = !unwind_table__build_with(file, go_rows__read, &table, NULL) &&
		     table.n_pages && unwind_table__find(&table, vaddr)->kind == UNWIND_REG;

	unwind_table__done(&table);
	return found;
}

static bool names(const struct elf_file *file, const struct go_table *table, uint64_t vaddr)
{
	static struct go_names_buf buf;
	struct runtime_symbol symbols[RUNTIME_SYMBOLS_MAX];
	uint64_t data;
	bool found = false;

	if (go_names__data(file, table, &data) == -ENOMEM)
		return false;
	for (uint64_t at = vaddr; at < vaddr + 64; at++) {
		int n = go_names__resolve(file, table, data, at, &buf, symbols);

		for (int i = 0; i < n; i++)
			found |= strlen(symbols[i].function) && symbols[i].file &&
				 strlen(symbols[i].file) && symbols[i].line;
	}
	return found;
}

bool target__run(const uint8_t *data, size_t size)
{
	struct elf_file *file = NULL;
	struct go_function first;
	struct go_table table;
	bool accepted = false;

	if (elf_file__open_memory(data, size, "fuzz", &file, NULL))
		return false;
	if (!go_table__open(file, &table)) {
		if (go_table__function(&table, 0, &first))
			accepted = unwinds(file, first.start) && names(file, &table, first.start);
		go_table__done(&table);
	}
	elf_file__free(file);
	return accepted;
}

/* Assembly as the linker of Go 1.18 (and, with `later`, 1.20) writes it, of two functions. A third
 * function is inlined in all of the first one. */
#define SOURCE(magic, later, call)                                                              \
	".text\n.globl main\nmain: .fill 16, 1, 0x90\n"                                         \
	"systemstack: .byte 0x64,0x48,0x8b,0x04,0x25,0xf8,0xff,0xff,0xff\n"                     \
	".byte 0x48,0x3b,0x83,0xc0,0,0,0, 0x48,0x8b,0x63,0x38, 0xff,0xd7\n"                     \
	".byte 0x48,0x8b,0x60,0x38, 0xc3\nend:\n"                                               \
	".section .gopclntab,\"a\"\n.balign 32\ntable: .long " magic "\n.byte 0,0,1,8\n"        \
	".quad 2, 1, main, names - table, units - table, files - table, values - table,"        \
	" functions - table\n"                                                                  \
	"names: .asciz \"main.main\"\nsystem: .asciz \"runtime.systemstack\"\n"                 \
	"inner: .asciz \"main.inner[go.shape.int]\"\n"                                          \
	".balign 4\nunits: .long 0\nfiles: .asciz \"main.go\"\n"                                \
	"values: .byte 0\nsp: .byte 2, 4, 16, 12, 0\nzero: .byte 2, 16, 0\n"                    \
	"line: .byte 20, 8, 2, 8, 0\n"                                                          \
	".balign 8\nfunctions: .long 0, first - functions\n"                                    \
	".long systemstack - main, second - functions\n.long end - main\n"                      \
	"first: .long 0, 0, 0, 0, sp - values, zero - values, line - values, 3, 0\n" later      \
	".byte 0, 0, 0, 4\n.long 0, 0, zero - values, -1, -1, -1, 0\n"                          \
	"second: .long systemstack - main, system - names, 0, 0, zero - values, zero - values," \
	" line - values, 0, 0\n" later ".byte 0, 0, 0, 0\n.fill 16\n"                           \
	".data\n.balign 8\nmodule: .quad table, names\n.fill 36, 8, 0\n" call

void target__seeds(void)
{
	fuzz__seed_elf("-x assembler", SOURCE("0xfffffff0", "",
					      ".quad tree\n.quad 0, 0\n"
					      "tree: .byte 0xff, 0xff, 0, 0\n"
					      ".long 0, 10, inner - names, 8\n"));
	fuzz__seed_elf("-x assembler", SOURCE("0xfffffff1", ".long 1\n",
					      ".quad 0, 0, tree\n"
					      "tree: .long 0, inner - names, 8, 1\n"));
}
