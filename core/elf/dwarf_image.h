/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DWARF_IMAGE_H
#define BRAID_DWARF_IMAGE_H

#include "core/elf/elf_file.h"

/* Opens the debug information of a file as an ELF file of its own in memory, for libdw. It contains
 * only the sections in use, read by blocks, inflated, and charged. libdw would read all sections,
 * whatever their size, in one call. A unit whose table of abbreviations exceeds the limit makes the
 * whole image unusable, as libdw reads such a table in one call, too.
 *
 * DWARF_IMAGE_ROOM zeroes follow the strings of .debug_str (core/elf/dwarf_split.c).
 *
 * Returns 0, -ENOENT if there is no debug information or it is unusable (core/elf/debug_missing.h
 * has the reason), -ENOMEM or -EINTR. */
#define DWARF_IMAGE_ROOM 64
int dwarf_image__open(const struct elf_file *file, struct elf_file **ret);

/* Returns the length of the unit at @offset of a section of the image, including the length field,
 * or 0 if there is none. */
uint64_t dwarf_image__unit_bytes(const struct elf_file *image, const char *section,
				 uint64_t offset);

/* Checks the tables of abbreviations of the units of @info. Returns 0, -EBADMSG if one exceeds the
 * limit, or -EFBIG or -EINTR as quota__look(). */
int dwarf_image__check_abbrevs(const uint8_t *info, uint64_t size, const uint8_t *abbrevs,
			       uint64_t abbrevs_size);

#endif
