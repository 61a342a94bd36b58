/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_MINIDEBUG_H
#define BRAID_MINIDEBUG_H

#include "core/elf/elf_file.h"

/* Opens the small symbol file that Fedora and others store, LZMA-compressed, in .gnu_debugdata.
 * Returns 0, -ENOENT (absent or malformed), -ENOMEM or -EINTR. The caller frees *@ret with
 * elf_file__free(). */
int minidebug__open(const struct elf_file *file, struct elf_file **ret);

#endif
