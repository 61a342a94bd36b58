/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LOCK_SITES_H
#define BRAID_LOCK_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/elf/elf_file.h"

/* Finds the lock functions in a C library. */

struct lock_function {
	const char *name; /* NULL: end of the list */
	uint32_t call;	  /* enum lock_call */
	bool at_return;	  /* probe the returns, too */
};

/* Functions that wait, and functions that determine the order of locks. */
extern const struct lock_function lock_functions_wait[], lock_functions_order[];

struct lock_site {
	uint64_t vaddr;
	uint64_t cookie; /* bpf/lock_calls.h */
	bool at_return;
	const char *name;
};

#define LOCK_SITES_MAX 48

/* Finds the functions of the file, each address once. Returns their number. Returns 0 for a file
 * that does not create threads: libc.so.6 of glibc up to 2.33 only refers to libpthread.so.0. */
size_t lock_sites__find(const struct elf_file *file, const struct lock_function *functions,
			struct lock_site ret[LOCK_SITES_MAX]);

#endif
