/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FUNCTION_END_H
#define BRAID_FUNCTION_END_H

#include <stdint.h>

#include "core/elf/elf_file.h"

/* Returns the end of the code that control reaches from @start without jumps or by conditional
 * jumps. The end is not after @end, nor after the start of a function that the code calls. An
 * unconditional jump may target another function, so it ends this one: code that only other jumps
 * reach is left out rather than guessed. Returns @start if there is no such code, or if memory is
 * exhausted. */
uint64_t function_end__find(const struct elf_file *file, uint64_t start, uint64_t end);

#endif
