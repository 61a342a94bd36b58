/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_HOSTILE_ELF_H
#define BRAID_TESTS_HOSTILE_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* Writes the headers of ELF files with arbitrary claims. Offsets and sizes are written as given.
 * Only the headers and the names of sections are written. */

#define HOSTILE_SECTIONS_MAX 32
#define HOSTILE_PHDRS_MAX    1024

struct hostile_section {
	const char *name;
	uint32_t type, link;
	uint64_t flags, addr, offset, size;
};

/* Writes the headers of segments after the file's header, and those of sections, with their names,
 * at @headers_at. The file must have its size already. */
static inline bool hostile_elf__write(int fd, const Elf64_Phdr *phdrs, size_t n_phdrs,
				      const struct hostile_section *sections, size_t n_sections,
				      uint64_t headers_at)
{
	Elf64_Shdr shdrs[HOSTILE_SECTIONS_MAX + 2] = {};
	char names[2048] = "\0.shstrtab";
	size_t names_n = sizeof("\0.shstrtab"), n = n_sections + 2;
	Elf64_Ehdr ehdr = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(ehdr),
		.e_ehsize = sizeof(ehdr),
		.e_phentsize = sizeof(*phdrs),
		.e_phnum = n_phdrs,
		.e_shentsize = sizeof(*shdrs),
		.e_shoff = n_sections ? headers_at : 0,
		.e_shnum = n_sections ? n : 0,
		.e_shstrndx = n_sections ? n - 1 : 0,
	};

	for (size_t i = 0; i < n_sections; i++) {
		const struct hostile_section *from = &sections[i];

		shdrs[i + 1] = (Elf64_Shdr) { .sh_name = names_n,
					      .sh_type = from->type,
					      .sh_flags = from->flags,
					      .sh_addr = from->addr,
					      .sh_offset = from->offset,
					      .sh_size = from->size,
					      .sh_link = from->link,
					      .sh_addralign = 8 };
		strcpy(names + names_n, from->name);
		names_n += strlen(from->name) + 1;
	}
	shdrs[n - 1] = (Elf64_Shdr) { .sh_name = 1,
				      .sh_type = SHT_STRTAB,
				      .sh_offset = headers_at + n * sizeof(*shdrs),
				      .sh_size = names_n,
				      .sh_addralign = 1 };
	return pwrite(fd, &ehdr, sizeof(ehdr), 0) == sizeof(ehdr) &&
	       pwrite(fd, phdrs, n_phdrs * sizeof(*phdrs), sizeof(ehdr)) ==
		       (ssize_t)(n_phdrs * sizeof(*phdrs)) &&
	       (!n_sections ||
		(pwrite(fd, shdrs, n * sizeof(*shdrs), headers_at) ==
			 (ssize_t)(n * sizeof(*shdrs)) &&
		 pwrite(fd, names, names_n, headers_at + n * sizeof(*shdrs)) == (ssize_t)names_n));
}

#endif
