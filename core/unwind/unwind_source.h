/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_UNWIND_SOURCE_H
#define BRAID_UNWIND_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/elf/elf_file.h"
#include "core/insn/insn_ranges.h"

/* All bytes that an unwind table is made from: addresses of code, call frame information as the
 * builder reads it, and the short gaps in it that contain code. The last part is the code that the
 * builder reads (core/insn/insn_rows.c), or the whole file if names and tables of jumps describe
 * the code. */

#define UNWIND_SOURCE_PARTS 4

struct unwind_source {
	uint64_t *facts; /* owned, as @code is; the other parts point into the file */
	unsigned char *code;
	struct iovec parts[UNWIND_SOURCE_PARTS];
	uint64_t bytes; /* total size of all parts */
};

/* Reads the source of the table of @file. The other parts determine the ranges that
 * insn_ranges__find() returns for a file. Ignores @ranges->list if @ranges is @named. Returns 0,
 * -ENOMEM, -EFBIG if the source is not worth caching, or -EBADMSG if the file does not have these
 * ranges. */
int unwind_source__read(const struct elf_file *file, const struct insn_ranges *ranges,
			struct unwind_source *ret);
void unwind_source__done(struct unwind_source *source); /* idempotent; a zeroed one is fine */

/* Compares the next bytes of @fd with the whole source. Returns 0 if they are equal, -EBADMSG if
 * not, or another negative errno. */
int unwind_source__compare(const struct unwind_source *source, int fd);

int unwind_source__write(const struct unwind_source *source, int fd); /* 0 or a negative errno */

/* Read or write exactly @len bytes. Return 0, -EBADMSG at the end of the file, or another negative
 * errno. */
int file__read(int fd, void *buf, size_t len);
int file__write(int fd, const void *buf, size_t len);

#endif
