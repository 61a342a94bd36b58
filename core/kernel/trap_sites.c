// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/trap_sites.h"

#include <errno.h>
#include <link.h>

#define FUNCTION(name, body)                                                  \
	asm(".pushsection .text\n.balign 16\n.globl " name "\n"               \
	    ".type " name ",@function\n" name ":\n.cfi_startproc\n" body "\n" \
	    "ret\n.cfi_endproc\n.size " name ",.-" name "\n.popsection")

#define PUSH "push %rbp\n.cfi_adjust_cfa_offset 8\npop %rbp\n.cfi_adjust_cfa_offset -8"
#define PAIR "nop\n.balign 8\nnop"

FUNCTION("trap_site_nop", "nop");
FUNCTION("trap_site_nop5", ".byte 0x0f,0x1f,0x44,0x00,0x00");
FUNCTION("trap_site_push", PUSH);
FUNCTION("trap_site_push_return", PUSH);
FUNCTION("trap_site_push_pair", PUSH);
FUNCTION("trap_site_step", "mov (%rsp),%rax");
FUNCTION("trap_site_pair", PAIR);
FUNCTION("trap_site_pair_shadow", PAIR);
FUNCTION("trap_site_pair_calls", PAIR);

struct search {
	uint64_t address, vaddr, offset;
};

static int look(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct search *search = ctx;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];
		uint64_t vaddr = search->address - info->dlpi_addr;

		if (phdr->p_type != PT_LOAD || vaddr < phdr->p_vaddr ||
		    vaddr - phdr->p_vaddr >= phdr->p_filesz)
			continue;
		search->vaddr = vaddr;
		search->offset = vaddr - phdr->p_vaddr + phdr->p_offset;
		return 1;
	}
	return 1; /* the first object is the program itself */
}

int trap_site__find(const void *code, uint64_t *ret_vaddr, uint64_t *ret_offset)
{
	struct search search = { .address = (uintptr_t)code };

	dl_iterate_phdr(look, &search);
	*ret_vaddr = search.vaddr;
	*ret_offset = search.offset;
	return search.vaddr ? 0 : -ENOENT;
}
