/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ALLOC_SITES_H
#define BRAID_ALLOC_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/elf/elf_file.h"
#include "runtimes/runtime.h"

/* Finds the functions of a file that allocate, and their arguments that give the size. */

/* malloc and the other functions of its library, with operator new. */
extern const struct runtime_allocator alloc_malloc;

struct alloc_site {
	uint64_t vaddr;
	uint64_t cookie;    /* ALLOC_COOKIE (bpf/alloc.h) */
	bool passes;	    /* as in struct runtime_allocates */
	bool wraps;	    /* as in struct runtime_allocates */
	bool aligns, pages; /* as in struct runtime_allocates, for glibc */
	const char *name;
};

#define ALLOC_SITES_MAX 48

/* Finds the functions of the file, each address once. Returns their number. In a library, these are
 * exported functions. In a program without libraries, and for an allocator that is not exported,
 * all symbol tables of the file are used. In other programs, only functions with the prefix of an
 * allocator of their own count. The last function is the most frequent one. */
size_t alloc_sites__find(const struct elf_file *file, const struct runtime_allocator *allocator,
			 struct alloc_site ret[ALLOC_SITES_MAX]);

/* As alloc_sites__find(), for functions that free, if the file also has functions that allocate. A
 * site may lie inside a function, so that free(NULL) does not reach it. The allocator must have
 * functions that free. */
size_t alloc_sites__find_frees(const struct elf_file *file,
			       const struct runtime_allocator *allocator,
			       struct alloc_site ret[ALLOC_SITES_MAX]);

/* Returns true for a program without libraries. */
bool alloc_sites__is_static(const struct elf_file *file);

#endif
