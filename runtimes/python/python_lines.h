/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_LINES_H
#define BRAID_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

/* Format of a code object's table of lines. */
enum python_line_format {
	PYTHON_LINES_LNOTAB,	/* up to 3.9: co_lnotab (Objects/lnotab_notes.txt) */
	PYTHON_LINES_RANGES,	/* 3.10: co_linetable (PEP 626) */
	PYTHON_LINES_LOCATIONS, /* 3.11 and later: co_linetable (Objects/locations.md) */
};

/* Returns the source line of the instruction at byte `offset` of a code object's bytecode, as
 * PyCode_Addr2Line does. The table is untrusted. A negative offset (a frame that has run nothing
 * yet) is at `first_line`. Returns 0 if the instruction has no line, or lies outside the table.
 * Tables in the format PYTHON_LINES_LNOTAB have no end. */
uint32_t python_lines__find(enum python_line_format format, const uint8_t *table, size_t size,
			    uint32_t first_line, int32_t offset);

#endif
