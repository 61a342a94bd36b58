/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_UNWIND_SOURCE_H
#define BRAID_UNWIND_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/elf/elf_file.h"
#include "core/insn/code_ranges.h"

/* All bytes that an unwind table is made of: where code is, call frame information as the builder
 * sees it, which short gaps in it hold code, and the code that the builder reads
 * (core/insn/code_rows.c); of code that names and tables of jumps say more of, the whole file. */

#define UNWIND_SOURCE_PARTS 4

struct unwind_source {
	uint64_t *facts; /* owned, as `code` is; the other parts are the file's */
	unsigned char *code;
	struct iovec parts[UNWIND_SOURCE_PARTS];
	uint64_t bytes; /* of all parts */
};

/* Which ranges code_ranges__find gives for a file is determined by the other parts. `ranges->list`
 * is not looked at where it is `named`. -ENOMEM; -EFBIG: it is not worth to be kept; -EBADMSG: the
 * file does not have these ranges. */
int unwind_source__read(const struct elf_file *file, const struct code_ranges *ranges,
			struct unwind_source *ret);
void unwind_source__done(struct unwind_source *source); /* idempotent; a zeroed one is fine */

/* Does what `fd` goes on with begin with all of it? 0, -EBADMSG: no; another negative errno. */
int unwind_source__compare(const struct unwind_source *source, int fd);

int unwind_source__write(const struct unwind_source *source, int fd); /* negative errno */

/* All bytes, or -EBADMSG at the end of the file, or another negative errno. */
int file__read(int fd, void *buf, size_t len);
int file__write(int fd, const void *buf, size_t len);

#endif
