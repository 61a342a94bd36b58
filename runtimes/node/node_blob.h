/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NODE_BLOB_H
#define BRAID_NODE_BLOB_H

#include "core/elf/elf_file.h"
#include "runtimes/runtime.h"

/* Finds V8's builtins in a file without symbols, by the checksums that V8 stores of their code and
 * of its description. */

/* @ret is empty if nothing is found: no sections, or another version's checksum. Returns 0,
 * -ENOMEM, or an error of quota__look(). */
int node_blob__find(const struct elf_file *file, struct runtime_range *ret);

#endif
