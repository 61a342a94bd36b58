/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ELF_INFLATE_H
#define BRAID_ELF_INFLATE_H

#include "core/elf/elf_section.h"

/* Compressed sections, by zlib and libzstd. Input and output come in blocks of QUOTA_BLOCK bytes,
 * each charged to the file's account. */

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2 /* elf.h has it since glibc 2.37 */
#endif

/* Reads the compression header of a section with SHF_COMPRESSED and sets @section's size, stored
 * and head. Returns 0, or -EBADMSG if the method is unknown or the size impossible, or -EINTR. */
int elf_inflate__describe(const struct elf_file *file, struct elf_section *section);

/* As elf_inflate__describe(), for a .zdebug_* section: "ZLIB" and a size, in big endian, precede
 * the data. */
int elf_inflate__describe_gnu(const struct elf_file *file, struct elf_section *section);

/* Copies the inflated contents to @to, which must have section->size bytes. Returns 0, -EBADMSG if
 * the data are malformed or have another size, -EFBIG, -EINTR or -ENOMEM. */
int elf_inflate__read(const struct elf_file *file, const struct elf_section *section, void *to);

#endif
