/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_UNWIND_COPY_IMAGE_H
#define BRAID_UNWIND_COPY_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/elf/elf_file.h"

/* One image as mapped in the target, with an index of its call frame information. It passes entries
 * to libunwind in one plain form, whatever section they are from. */

struct unwind_text {	/* bytes that libunwind reads; a zeroed one is empty */
	uint8_t *bytes; /* owned */
	size_t n, cap;
};

struct unwind_section;

struct unwind_image {
	const struct elf_file *file;	 /* borrowed */
	uint64_t bias;			 /* address = link-time address + bias */
	uint64_t start, end;		 /* addresses; everything between counts as this image */
	uint64_t own_start, own_end;	 /* code that libunwind must not leave; equal: none */
	bool mapped;			 /* false: not used since unwind_copy__flush() */
	struct unwind_section *sections; /* owned: .eh_frame, .debug_frame */
};

/* Reads the index and skips malformed entries. Returns 0 or -ENOMEM. */
int unwind_image__init(struct unwind_image *image, const struct elf_file *file, uint64_t bias);
void unwind_image__done(struct unwind_image *image); /* idempotent; a zeroed image is fine */

/* Writes the description of the code at @ip to @text, unless @text already contains it. The record
 * at *@ret_at is a binary search table of one entry (two 32-bit numbers, relative to the record). A
 * common information entry and a frame description entry as in .eh_frame follow. Returns 0, -ENOENT
 * if no entry covers the code, or -ENOMEM. */
int unwind_image__describe(struct unwind_image *image, uint64_t ip, struct unwind_text *text,
			   size_t *ret_at);

#endif
