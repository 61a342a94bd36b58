/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ELF_MEMORY_H
#define BRAID_ELF_MEMORY_H

#include "core/elf/elf_file.h"

/* An ELF image that is read from the memory in which it is loaded, for code whose file is
 * unreadable: a packed program, a deleted file, a file system that refuses root.
 *
 * The memory is untrusted, and may change while it is read. Everything is copied once and then
 * treated as a file's contents. The copy has the contents of PT_LOAD segments. Section headers are
 * generated from program headers (core/elf/elf_generated.h), so .symtab and DWARF are missing. */

/* Copies @size bytes at @address. Returns false if any of them is unreadable. */
typedef bool (*elf_memory_fn)(void *ctx, uint64_t address, void *to, size_t size);

struct elf_memory {
	elf_memory_fn read;
	void *ctx;
	uint64_t header; /* address of the ELF header */
};

/* Returns true if there is an ELF header and one of its executable segments contains @address. */
bool elf_memory__has_code(const struct elf_memory *memory, uint64_t address);

/* Copies the image. *@ret_bias: address = link-time address + bias. Charges the copied bytes to
 * @account. Returns 0, -ENOEXEC, -EBADMSG, -EFBIG, -EINTR or -ENOMEM. */
int elf_memory__copy(const struct elf_memory *memory, const char *path,
		     struct quota_account *account, struct elf_file **ret, uint64_t *ret_bias,
		     struct err *err);

/* Returns true if all parts that are not writable are equal in @memory and in @file, a copy. */
bool elf_memory__is_same(const struct elf_memory *memory, const struct elf_file *file);

#endif
