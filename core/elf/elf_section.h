/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ELF_SECTION_H
#define BRAID_ELF_SECTION_H

#include "core/elf/elf_file.h"

/* Contents of sections, read by braid itself. libelf would read, inflate and store any size that a
 * file claims, in one call. Here bytes are read in blocks, each charged to the file's account, and
 * the work can stop in between. libelf reads headers only. */

/* The data of a section that are needed to read its contents. */
struct elf_section {
	Elf_Scn *scn;
	GElf_Shdr shdr;
	uint64_t size;	 /* bytes of the contents, inflated */
	uint32_t stored; /* ELFCOMPRESS_ZLIB or ELFCOMPRESS_ZSTD; 0: not compressed */
	uint32_t head;	 /* bytes before compressed data */
};

/* Find a section by name or index. Return 0, -ENOENT if there is no such section or it has no
 * contents, -EBADMSG, -EFBIG or -EINTR. The name ".debug_x" also finds ".zdebug_x". */
int elf_section__find(const struct elf_file *file, const char *name, struct elf_section *ret);
int elf_section__at(const struct elf_file *file, size_t index, struct elf_section *ret);

/* Returns true if @file has a section under a well-known name: each program and each file of debug
 * information has at least one. Reads headers only, as such a section of a debug file is empty. */
bool elf_section__has_standard(const struct elf_file *file);

/* Copies the contents to @to, which must have section->size bytes. Returns 0, -EBADMSG, -EFBIG or
 * -EINTR. */
int elf_section__read(const struct elf_file *file, const struct elf_section *section, void *to);

/* Returns the contents, read once and cached until elf_file__free() or elf_file__drop(). NULL: they
 * are unreadable, or were not read because the work must stop. */
Elf_Data *elf_section__data(const struct elf_file *file, const struct elf_section *section);

#endif
