/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DWARF_IMAGE_H
#define BRAID_DWARF_IMAGE_H

#include "core/elf/elf_file.h"

/* The debug information of a file as an ELF file of its own in memory, for libdw: only the sections
 * that are used, read by blocks, inflated, and charged. libdw would take all there are, whatever
 * their size, at one go. Units whose tables of abbreviations are beyond reason make the whole of it
 * unusable, as libdw reads such a table at one go, too.
 *
 * Behind the strings of .debug_str there are DWARF_IMAGE_ROOM zeroes (core/elf/dwarf_split.c).
 *
 * Returns 0, -ENOENT if there is none or it is unusable (core/elf/debug_missing.h has the reason),
 * -ENOMEM or -EINTR. */
#define DWARF_IMAGE_ROOM 64
int dwarf_image__open(const struct elf_file *file, struct elf_file **ret);

/* Reads the length of the unit at @offset of a section of the image. With the field itself; 0 if
 * there is none. */
uint64_t dwarf_image__unit_bytes(const struct elf_file *image, const char *section,
				 uint64_t offset);

/* Returns -EBADMSG if a table of abbreviations of a unit of @info is beyond reason, -EFBIG or
 * -EINTR as quota__look(), or 0. */
int dwarf_image__check_abbrevs(const uint8_t *info, uint64_t size, const uint8_t *abbrevs,
			       uint64_t abbrevs_size);

#endif
