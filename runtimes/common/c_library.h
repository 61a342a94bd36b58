/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUNTIMES_C_LIBRARY_H
#define BRAID_RUNTIMES_C_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/c_library.h"
#include "core/elf/elf_file.h"

/* Offsets of thread-specific data in the C library of a process: glibc or musl, x86-64. */

/* Returns true if the file is made for glibc or musl, or is statically linked: it may be made for
 * one of them. */
bool c_library__is_supported(const struct elf_file *file);

/* Finds the C library of a process that has mapped `file`. The library that runs in the process
 * decides, since programs for glibc may run with musl (gcompat). musl is its own dynamic linker, so
 * it is mapped from the start. Returns 0, or -ENOTSUP if it is neither. */
int c_library__find(uint32_t pid, const struct elf_file *file, struct c_library *ret);

/* Reads the offsets from a file that is musl, or has musl linked in. Returns -ENOENT for another
 * file, or an unreadable one. */
int c_library__of_musl(const struct elf_file *file, struct c_library *ret);

#endif
