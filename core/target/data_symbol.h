/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DATA_SYMBOL_H
#define BRAID_DATA_SYMBOL_H

#include <stddef.h>
#include <stdint.h>

#include "core/target/process.h"

/* What a static variable is called that a process has at an address, in the symbol tables of its
 * file: "name+0x28 (file)". 0; -ENOENT: it is in no file, or that does not say. */
int data_symbol__of(const struct process *process, uint64_t address, char *ret, size_t size);

#endif
