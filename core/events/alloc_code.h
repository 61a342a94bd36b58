/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ALLOC_CODE_H
#define BRAID_ALLOC_CODE_H

#include "bpf/alloc.h"
#include "core/events/alloc_sites.h"

/* The code of functions that allocate: where it lies, and whether it ends by a jump to another one
 * of them. By this the kernel half tells an inner call from one of the program
 * (bpf/alloc_inner.bpf.h). */

/* Fills @ret for the @n sites of @file. Where the code cannot be followed to its end, it is taken
 * to jump. -ENOMEM. */
int alloc_code__find(const struct elf_file *file, const struct alloc_site *sites, size_t n,
		     struct alloc_code *ret);

#endif
