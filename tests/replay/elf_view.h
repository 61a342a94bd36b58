/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_ELF_VIEW_H
#define BRAID_TESTS_REPLAY_ELF_VIEW_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of an ELF file, with their offsets in the file, which libelf does not give. */
struct elf_view {
	const unsigned char *bytes; /* mapping of the file */
	uint64_t size;
};

int elf_view__open(int fd, struct elf_view *ret); /* 0 or -EBADMSG; @fd is borrowed */
void elf_view__close(struct elf_view *view);	  /* idempotent; @view may be zeroed */

/* Returns NULL if the file does not contain all of the bytes. */
const void *elf_view__at(const struct elf_view *view, uint64_t offset, uint64_t size);

static inline const Elf64_Ehdr *elf_view__head(const struct elf_view *view)
{
	return (const Elf64_Ehdr *)view->bytes;
}

const Elf64_Phdr *elf_view__segments(const struct elf_view *view); /* e_phnum of them, or NULL */
const Elf64_Shdr *elf_view__section(const struct elf_view *view, size_t index); /* or NULL */

/* Returns a section with contents; NULL: no section has that name. */
const Elf64_Shdr *elf_view__find(const struct elf_view *view, const char *name);

/* Finds the offset of a link-time address in the file. */
bool elf_view__to_offset(const struct elf_view *view, uint64_t vaddr, uint64_t *ret);

/* Returns true if the address is in an executable segment. */
bool elf_view__is_code(const struct elf_view *view, uint64_t vaddr);

#endif
