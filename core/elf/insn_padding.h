/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_INSN_PADDING_H
#define BRAID_INSN_PADDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/elf/cfi_entries.h"

/* Gaps between functions with a frame description that are too short for an aligned function.
 * Nearly all contain only the filling up to the next function. But a linker may have placed a
 * function there that has neither alignment nor description. */

#define INSN_GAP_BYTES 16 /* shorter gaps are examined */

/* Returns true if the bytes are filling of compilers, assemblers and linkers: `nop` of any length,
 * `int3` or zeros. */
bool insn_padding__is_filling(const uint8_t *code, size_t size);

/* A buffer of a file's code, so that one read serves many gaps. Must start zeroed except for @file.
 */
struct insn_padding {
	const struct elf_file *file; /* borrowed */
	uint64_t described;	     /* end of the functions so far; link-time address */
	uint64_t at;		     /* link-time address of the bytes */
	size_t n;
	uint8_t bytes[16 << 10];
};

/* Advances over the functions of a file, in the order of their starts. Returns true if @fde begins
 * after a short gap that contains more than filling, or that is unreadable. */
bool insn_padding__has_code(struct insn_padding *padding, const struct cfi_fde *fde);

#endif
