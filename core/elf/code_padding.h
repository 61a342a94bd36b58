/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_PADDING_H
#define BRAID_CODE_PADDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/elf/cfi_entries.h"

/* Gaps between functions with a frame description that are too short for an aligned function.
 * Nearly all hold the filling up to the next function, but a linker may have placed a function
 * there that has neither alignment nor description. */

#define CODE_GAP_BYTES 16 /* shorter gaps are examined */

/* Returns true if the bytes are what compilers, assemblers and linkers fill code up with: `nop` of
 * any length, `int3` or zeros. */
bool code_padding__is_filling(const uint8_t *code, size_t size);

/* Part of a file's code, so that gaps are read many at a time. Starts zeroed but for `file`. */
struct code_padding {
	const struct elf_file *file; /* borrowed */
	uint64_t described;	     /* end of the functions so far; link-time address */
	uint64_t at;		     /* link-time address of the bytes */
	size_t n;
	uint8_t bytes[16 << 10];
};

/* Advances over the functions of a file, in the order of their starts. Returns true if @fde begins
 * behind a short gap that holds more than filling, or that cannot be read. */
bool code_padding__has_code(struct code_padding *padding, const struct cfi_fde *fde);

#endif
