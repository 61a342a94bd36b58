/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CORE_ELF_H
#define BRAID_CORE_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* The only reader of core files (ELF, ET_CORE, x86-64): the header, the segments, the notes, and
 * the mapped files in NT_FILE. The file is untrusted. A malformed note ends the notes: earlier
 * notes are used, and `is_damaged` is set. */

struct arch; /* core/arch/arch.h */

struct core_mapping { /* an entry of NT_FILE */
	uint64_t start, end, offset;
	const char *path; /* borrowed from the notes */
};

struct core_elf {
	int fd;	       /* owned */
	uint64_t size; /* bytes of the file */
	const struct arch *arch;
	Elf64_Phdr *segments; /* the whole table, unchecked */
	size_t n_segments;
	char *notes;	  /* contents of the first PT_NOTE segment */
	uint64_t n_notes; /* bytes of well-formed notes */
	struct core_mapping *files;
	size_t n_files;
	bool is_damaged; /* notes or entries of NT_FILE are missing */
};

struct core_note {
	uint32_t type;
	const char *desc; /* borrowed */
	uint64_t size;	  /* bytes */
};

/* Reads the file. Takes ownership of @fd, also on failure. Returns 0, -EBADMSG if the file is not a
 * core file, -ENOTSUP for a machine that core/arch does not describe, or -ENOMEM. The message in
 * @err names @path. */
int core_elf__open(int fd, const char *path, struct core_elf *ret, struct err *err);
void core_elf__close(struct core_elf *core); /* idempotent; fd -1 and zeroes: closed */

/* Returns -ENOTSUP. The message in @err says that the core file belongs to a process of @machine
 * (EM_*), which this build does not unwind. */
int core_elf__refuse(const char *path, unsigned machine, struct err *err);

/* Reads @size bytes at @offset of the file. Returns false if the file has fewer. */
bool core_elf__read(const struct core_elf *core, void *to, uint64_t size, uint64_t offset);

/* Reads the note at *@at, which starts as 0, into *@ret, and advances *@at. Returns false after the
 * last note. */
bool core_elf__next_note(const struct core_elf *core, uint64_t *at, struct core_note *ret);

#endif
