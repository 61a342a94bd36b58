/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ALLOC_SITES_H
#define BRAID_ALLOC_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/elf/elf_file.h"
#include "runtimes/runtime.h"

/* Which functions of a file allocate, and which of their arguments say how much. */

/* malloc and what else its library has, operator new included. */
extern const struct runtime_allocator alloc_malloc;

struct alloc_site {
	uint64_t vaddr;
	uint64_t cookie;    /* ALLOC_COOKIE (bpf/alloc.h) */
	bool passes;	    /* as in struct runtime_allocates */
	bool wraps;	    /* the same */
	bool aligns, pages; /* the same, in glibc */
	const char *name;
};

#define ALLOC_SITES_MAX 48

/* Those of the file, each address once; how many. Of a library the functions that it exports; of a
 * program that has no libraries, and of an allocator that is not exported, those of any symbol
 * table that it has; of other programs there those with the prefix of an allocator of their own.
 * The last one is called most. */
size_t alloc_sites__find(const struct elf_file *file, const struct runtime_allocator *allocator,
			 struct alloc_site ret[ALLOC_SITES_MAX]);

/* The same of functions that free, or a place in them that comes by only if there is something to
 * free, if there are any of the others; the allocator has such. */
size_t alloc_sites__find_frees(const struct elf_file *file,
			       const struct runtime_allocator *allocator,
			       struct alloc_site ret[ALLOC_SITES_MAX]);

/* Is it a program that has no libraries? */
bool alloc_sites__is_static(const struct elf_file *file);

#endif
