/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_ELF_VIEW_H
#define BRAID_TESTS_REPLAY_ELF_VIEW_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of an ELF file, with their places in the file, which libelf does not tell. */
struct elf_view {
	const unsigned char *bytes; /* mapped */
	uint64_t size;
};

int elf_view__open(int fd, struct elf_view *ret); /* -EBADMSG; `fd` is borrowed */
void elf_view__close(struct elf_view *view);	  /* idempotent; a zeroed one is fine */

/* NULL where the file does not hold all of them. */
const void *elf_view__at(const struct elf_view *view, uint64_t offset, uint64_t size);

static inline const Elf64_Ehdr *elf_view__head(const struct elf_view *view)
{
	return (const Elf64_Ehdr *)view->bytes;
}

const Elf64_Phdr *elf_view__segments(const struct elf_view *view); /* e_phnum of them, or NULL */
const Elf64_Shdr *elf_view__section(const struct elf_view *view, size_t index); /* or NULL */

/* A section with contents; NULL: there is none of that name. */
const Elf64_Shdr *elf_view__find(const struct elf_view *view, const char *name);

/* Where the byte of a link-time address is in the file. */
bool elf_view__to_offset(const struct elf_view *view, uint64_t vaddr, uint64_t *ret);

/* Is it in a segment that can be executed? */
bool elf_view__is_code(const struct elf_view *view, uint64_t vaddr);

#endif
