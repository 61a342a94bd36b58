/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CORE_ELF_H
#define BRAID_CORE_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* The one reader of core files (ELF, ET_CORE, x86-64): their header, segments, notes, and the
 * mapped files that the note NT_FILE names. The file is untrusted. A malformed note ends the notes:
 * those before it are used, and `is_damaged` is set. */

struct core_mapping { /* an entry of NT_FILE */
	uint64_t start, end, offset;
	const char *path; /* borrowed from the notes */
};

struct core_elf {
	int fd;		      /* owned */
	uint64_t size;	      /* bytes of the file */
	Elf64_Phdr *segments; /* the whole table, unchecked */
	size_t n_segments;
	char *notes;	  /* of the first PT_NOTE segment */
	uint64_t n_notes; /* bytes of the notes that are well-formed */
	struct core_mapping *files;
	size_t n_files;
	bool is_damaged; /* notes or entries of NT_FILE are missing */
};

struct core_note {
	uint32_t type;
	const char *desc; /* borrowed */
	uint64_t size;	  /* bytes */
};

/* Reads the file, and takes @fd, also on failure. Returns 0; -EBADMSG for a file that is no core
 * file, -ENOTSUP for one of another machine, or -ENOMEM. The message in @err names @path. */
int core_elf__open(int fd, const char *path, struct core_elf *ret, struct err *err);
void core_elf__close(struct core_elf *core); /* idempotent; all zero with fd -1 is closed */

/* Reads @size bytes at @offset of the file. Returns false if these are not all there. */
bool core_elf__read(const struct core_elf *core, void *to, uint64_t size, uint64_t offset);

/* Returns the note at *@at, which begins as 0, and advances *@at. False: there are no more. */
bool core_elf__next_note(const struct core_elf *core, uint64_t *at, struct core_note *ret);

#endif
