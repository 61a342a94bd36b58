/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JITDUMP_H
#define BRAID_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/target/jit_file.h"
#include "core/target/jit_index.h"

/* Jitdump files (jit-PID.dump): the code that a JIT compiler generated, with addresses, times in
 * nanoseconds, source lines, and moves. The file also contains the code itself, which is skipped.
 * Format: Linux, tools/perf/Documentation/jitdump-specification.txt, version 1. */

struct jitdump {
	bool started;	/* the header was read */
	bool broken;	/* the format is unrecognizable; nothing more is read */
	bool own_clock; /* its times are not CLOCK_MONOTONIC */
	/* Position of the last debug record, and the address of its code. The record precedes the
	 * code's own record. 0: none. */
	uint32_t lines;
	uint64_t lines_of;
	uint64_t symbols, skipped; /* records of code */
};

/* Reads the complete records that were added since the last call, up to @max bytes. Code with an
 * unknown or a future time counts from @since_ns on. Returns the number of bytes read, which is
 * lower if @file->refused is set; -ENOSPC: the file is too large; or an error of jit_index__add().
 */
int64_t jitdump__read(struct jitdump *dump, struct jit_file *file, uint64_t max, uint64_t since_ns,
		      uint64_t now_ns, struct jit_index *index);

/* Copies the name of an entry, cut to fit. Returns false if the file no longer has it. */
bool jitdump__name(struct jit_file *file, const struct jit_entry *entry, char *buf, size_t size);

/* Finds file and line of the code at @address, which lies in the entry. @skew is the distance that
 * the writer adds to the addresses of lines. Returns false if there are none, or if they are
 * malformed. */
bool jitdump__line(struct jit_file *file, const struct jit_entry *entry, uint64_t address,
		   uint32_t skew, char *buf, size_t size, uint32_t *ret_line);

#endif
