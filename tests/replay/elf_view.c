// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/replay/elf_view.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

int elf_view__open(int fd, struct elf_view *ret)
{
	struct elf_view view = {};
	struct stat st;
	void *bytes;

	if (fstat(fd, &st) || st.st_size < (off_t)sizeof(Elf64_Ehdr))
		return -EBADMSG;
	bytes = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return -EBADMSG;
	view = (struct elf_view) { bytes, st.st_size };
	if (memcmp(bytes, ELFMAG, SELFMAG) != 0) {
		elf_view__close(&view);
		return -EBADMSG;
	}
	*ret = view;
	return 0;
}

void elf_view__close(struct elf_view *view)
{
	if (view->bytes)
		munmap((void *)view->bytes, view->size);
	*view = (struct elf_view) {};
}

const void *elf_view__at(const struct elf_view *view, uint64_t offset, uint64_t size)
{
	return offset <= view->size && size <= view->size - offset ? view->bytes + offset : NULL;
}

const Elf64_Phdr *elf_view__segments(const struct elf_view *view)
{
	const Elf64_Ehdr *head = elf_view__head(view);

	return elf_view__at(view, head->e_phoff, head->e_phnum * sizeof(Elf64_Phdr));
}

const Elf64_Shdr *elf_view__section(const struct elf_view *view, size_t index)
{
	const Elf64_Ehdr *head = elf_view__head(view);

	if (index >= head->e_shnum)
		return NULL;
	return elf_view__at(view, head->e_shoff + index * sizeof(Elf64_Shdr), sizeof(Elf64_Shdr));
}

static const char *name_of(const struct elf_view *view, const Elf64_Shdr *shdr)
{
	const Elf64_Shdr *names = elf_view__section(view, elf_view__head(view)->e_shstrndx);
	const char *text = names ? elf_view__at(view, names->sh_offset, names->sh_size) : NULL;

	return text && shdr->sh_name < names->sh_size ? text + shdr->sh_name : "";
}

const Elf64_Shdr *elf_view__find(const struct elf_view *view, const char *name)
{
	for (size_t i = 0; i < elf_view__head(view)->e_shnum; i++) {
		const Elf64_Shdr *shdr = elf_view__section(view, i);

		if (shdr && !strcmp(name_of(view, shdr), name) && shdr->sh_type != SHT_NOBITS &&
		    elf_view__at(view, shdr->sh_offset, shdr->sh_size))
			return shdr;
	}
	return NULL;
}

bool elf_view__to_offset(const struct elf_view *view, uint64_t vaddr, uint64_t *ret)
{
	const Elf64_Phdr *phdr = elf_view__segments(view);

	for (size_t i = 0; phdr && i < elf_view__head(view)->e_phnum; i++) {
		if (phdr[i].p_type != PT_LOAD || vaddr < phdr[i].p_vaddr ||
		    vaddr - phdr[i].p_vaddr >= phdr[i].p_filesz)
			continue;
		*ret = phdr[i].p_offset + (vaddr - phdr[i].p_vaddr);
		return true;
	}
	return false;
}

bool elf_view__is_code(const struct elf_view *view, uint64_t vaddr)
{
	const Elf64_Phdr *phdr = elf_view__segments(view);

	for (size_t i = 0; phdr && i < elf_view__head(view)->e_phnum; i++)
		if (phdr[i].p_type == PT_LOAD && phdr[i].p_flags & PF_X &&
		    vaddr - phdr[i].p_vaddr < phdr[i].p_filesz)
			return true;
	return false;
}
