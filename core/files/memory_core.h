/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_MEMORY_CORE_H
#define BRAID_MEMORY_CORE_H

#include "core/base/memory.h"
#include "core/files/core_elf.h"

/* Memory from a core file (ELF, ET_CORE, x86-64). Takes ownership of @fd, also on failure. The
 * kernel leaves out of a core the pages that a file backs. They are read from that file, which
 * NT_FILE names, if it still exists. Errors are those of core_elf__open(). */
int memory__of_core(int fd, const char *path, struct memory **ret, struct err *err);

/* Returns the core file's other contents, borrowed; NULL for other memory. */
const struct core_elf *memory__core(const struct memory *memory);

#endif
