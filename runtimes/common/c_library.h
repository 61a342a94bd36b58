/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUNTIMES_C_LIBRARY_H
#define BRAID_RUNTIMES_C_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/c_library.h"
#include "core/elf/elf_file.h"

/* Where the C library of a process keeps what belongs to a thread: glibc or musl, x86-64. */

/* Is the file for a C library that is known? Those that are linked statically may be. */
bool c_library__is_known(const struct elf_file *file);

/* Of a process that has mapped `file`. What counts is the library that runs in it, as programs for
 * glibc may run with musl (gcompat): musl is its own dynamic linker, so it is there from the start.
 * 0, or -ENOTSUP: it is neither. */
int c_library__find(uint32_t pid, const struct elf_file *file, struct c_library *ret);

/* Of a file that is musl, or has it linked in. -ENOENT: it is not, or not readable. */
int c_library__of_musl(const struct elf_file *file, struct c_library *ret);

#endif
