/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ALLOC_FUNCTION_H
#define BRAID_ALLOC_FUNCTION_H

#include "bpf/alloc.h"
#include "core/events/alloc_sites.h"

/* The code of functions that allocate: its extent, and whether it ends by a jump to another such
 * function. The kernel half uses it to distinguish inner calls from those of the program
 * (bpf/alloc_inner.bpf.h). */

/* Fills @ret for the @n sites of @file. If the code cannot be followed to its end, it is assumed to
 * jump. Returns 0 or -ENOMEM. */
int alloc_function__find(const struct elf_file *file, const struct alloc_site *sites, size_t n,
			 struct alloc_function *ret);

#endif
