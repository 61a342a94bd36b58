/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DATA_SYMBOL_H
#define BRAID_DATA_SYMBOL_H

#include <stddef.h>
#include <stdint.h>

#include "core/target/process.h"

/* Finds the static variable at @address in the symbol tables of its file: "name+0x28 (file)".
 * Returns 0; -ENOENT: the address is in no file, or the file has no such symbol. */
int data_symbol__of(const struct process *process, uint64_t address, char *ret, size_t size);

#endif
