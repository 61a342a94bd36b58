/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FUNCTION_END_H
#define BRAID_FUNCTION_END_H

#include <stdint.h>

#include "core/elf/elf_file.h"

/* Where the code ends that control reaches from `start`, by going on and by conditional jumps; not
 * behind `end`, nor where a function begins that it calls. A jump that is always taken may lead to
 * another function, so it ends this one: code that nothing else leads to is left out rather than
 * guessed. `start`: there is no such code, or no memory to look at it. */
uint64_t function_end__find(const struct elf_file *file, uint64_t start, uint64_t end);

#endif
