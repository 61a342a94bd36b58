// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "probes/usdt.h"
#include "probes/usdt_args.h"
#include "tests/fuzz/fuzz.h"

/* Reads the probe sites of an ELF file and their arguments. */
bool target__run(const uint8_t *data, size_t size)
{
	struct probe_arg args[USDT_ARGS_MAX];
	struct usdt_sites sites = {};
	struct elf_file *file = NULL;
	bool parsed = false;

	if (elf_file__open_memory(data, size, "fuzz", &file, NULL) != 0)
		return false;
	if (usdt__read(file, &sites, NULL) == 0) {
		for (size_t i = 0; i < sites.n; i++) {
			const struct usdt_site *site = &sites.list[i];
			int n = usdt_args__parse(site->arguments, file, site->pc_vaddr, args, NULL);

			parsed |= n == 3 && strlen(site->provider) == 4 && site->name[0];
		}
	}
	usdt_sites__done(&sites);
	elf_file__free(file);
	return parsed;
}

/* Notes as <sys/sdt.h> writes them. Not every machine has that header. */
static const char source[] = ".macro site args\n"
			     "990: nop\n"
			     ".pushsection .note.stapsdt, \"\", @note\n"
			     ".balign 4\n"
			     ".4byte 992f - 991f, 994f - 993f, 3\n"
			     "991: .asciz \"stapsdt\"\n"
			     "992: .balign 4\n"
			     "993: .8byte 990b, _.stapsdt.base, counter\n"
			     ".asciz \"fuzz\", \"site\", \"\\args\"\n"
			     "994: .balign 4\n"
			     ".popsection\n"
			     ".endm\n"
			     ".section .stapsdt.base, \"a\"\n"
			     "_.stapsdt.base: .space 1\n"
			     ".data\n"
			     ".globl counter\n"
			     "counter: .8byte 0\n"
			     ".text\n"
			     ".globl main\n"
			     "main: site \"8@%rax -4@16(%rsp,%rcx,8) -2@$5\"\n"
			     "site \"4@counter+2(%rip) 8@%rbx 1@%sil\"\n"
			     "ret\n";

void target__seeds(void)
{
	fuzz__seed_elf("-x assembler", source);
}
