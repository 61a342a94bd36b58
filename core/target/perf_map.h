/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PERF_MAP_H
#define BRAID_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/target/jit_file.h"
#include "core/target/jit_index.h"

/* Perf maps, as JIT compilers write them for perf: a line for each piece of code,
 *   START SIZE NAME
 * in hexadecimal, with or without 0x. The name extends to the end of the line and may contain
 * blanks. Lines are only appended; later ones replace earlier ones. */

struct perf_map_line {
	uint64_t start, size;
	const char *name; /* within the line; not terminated by NUL */
	size_t name_len;
};

/* Parses one line without its newline. Returns false if it is malformed or describes no user code:
 * no size, in the kernel's half of addresses, or beyond its end. */
bool perf_map__parse_line(const char *line, size_t len, struct perf_map_line *ret);

struct perf_map_counts {
	uint64_t symbols, skipped; /* lines */
};

/* Reads the complete lines that were added since the last call, at most @max bytes. Names stay in
 * the file. Adds to @counts. Returns the number of bytes read, which is lower if @file->refused is
 * set; -ENOSPC: the file is too large; or an error of jit_index__add(). */
int64_t perf_map__read(struct jit_file *file, uint64_t max, uint64_t since_ns,
		       struct jit_index *index, struct perf_map_counts *counts);

/* Copies the name of an entry, cut to fit. Returns false if the file no longer has it. */
bool perf_map__name(struct jit_file *file, const struct jit_entry *entry, char *buf, size_t size);

#endif
