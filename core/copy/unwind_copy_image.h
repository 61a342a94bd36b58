/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_UNWIND_COPY_IMAGE_H
#define BRAID_UNWIND_COPY_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/elf/elf_file.h"

/* One image as it is mapped in the target, with an index of its call frame information. It feeds
 * libunwind entries in one plain form, whatever the section they come from looks like. */

struct unwind_text {	/* bytes that libunwind reads; a zeroed one is empty */
	uint8_t *bytes; /* owned */
	size_t n, cap;
};

struct unwind_section;

struct unwind_image {
	const struct elf_file *file; /* borrowed */
	uint64_t bias;		     /* address = link-time address + bias */
	uint64_t start, end;	     /* addresses; everything between counts as this image */
	uint64_t own_start, own_end; /* addresses of code that is not left by this; equal: none */
	bool mapped;		     /* false: known from earlier */
	struct unwind_section *sections; /* owned: .eh_frame, .debug_frame */
};

/* Reads the index; malformed entries are left out. -ENOMEM. */
int unwind_image__init(struct unwind_image *image, const struct elf_file *file, uint64_t bias);
void unwind_image__done(struct unwind_image *image); /* idempotent; a zeroed image is fine */

/* Writes what is known about the code at `ip` to `text`, unless that was done before. The record
 * at `ret_at` is a binary search table of one entry (two 32-bit numbers, relative to the record),
 * followed by a common information entry and a frame description entry as in .eh_frame.
 * 0, -ENOENT (nothing known about this code) or -ENOMEM. */
int unwind_image__describe(struct unwind_image *image, uint64_t ip, struct unwind_text *text,
			   size_t *ret_at);

#endif
