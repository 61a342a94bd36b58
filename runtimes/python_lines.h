/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_LINES_H
#define BRAID_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

/* Source line of the instruction at byte `offset` of a code object's bytecode, from the location
 * table of CPython 3.11 and later (co_linetable; Objects/locations.md). The table may be anything.
 * A negative offset (a frame that has run nothing yet) is at `first_line`. 0: the instruction has
 * no line, or lies outside the table. */
uint32_t python_lines__find(const uint8_t *table, size_t size, uint32_t first_line, int32_t offset);

#endif
