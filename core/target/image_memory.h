/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_IMAGE_MEMORY_H
#define BRAID_IMAGE_MEMORY_H

#include "core/target/moved_code.h"

/* Images that are read from a process's memory, as their files are unreadable
 * (core/elf/elf_memory.h).
 *
 * The ELF header is where the file is mapped from its start. Memory without such a mapping, as of a
 * program that has unpacked itself, has three candidates. They are the page of the program headers
 * (by the kernel), the start of memory with code, and the start of the mapping directly below.
 * Processes of one user share an image if their memory is the same. */

/* Finds the image that has its code in @mapping, an executable one of @mappings. @uid is the user
 * of the process, @account its account. Returns 0, -ENOENT, or -ENOMEM. */
int image_memory__find(struct images *images, uint32_t pid, uint32_t uid,
		       const struct procfs_mappings *mappings, const struct procfs_mapping *mapping,
		       struct quota_account *account, struct moved_code *ret);

/* As moved_code__find(), for the program that the process executes. The kernel reports the address
 * of its program headers, so that no mapping of the file has to remain near the code. */
int image_memory__find_program(struct images *images, uint32_t pid,
			       const struct procfs_mapping *mapping, struct moved_code *ret);

#endif
