/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_MINIDEBUG_H
#define BRAID_MINIDEBUG_H

#include "core/elf/elf_file.h"

/* Opens the small symbol file that Fedora and others put, LZMA-compressed, into .gnu_debugdata.
 * 0, -ENOENT (absent or malformed) or -ENOMEM. Free the result with elf_file__free. */
int minidebug__open(const struct elf_file *file, struct elf_file **ret);

#endif
