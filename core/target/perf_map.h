/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PERF_MAP_H
#define BRAID_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/target/code_file.h"
#include "core/target/code_index.h"

/* Perf maps, as JIT compilers write them for perf: a line for each piece of code,
 *   START SIZE NAME
 * in hexadecimal, with or without 0x; the name goes to the end of the line and may have blanks in
 * it. Lines are only ever added; those that came later hold. */

struct perf_map_line {
	uint64_t start, size;
	const char *name; /* within the line; not terminated */
	size_t name_len;
};

/* One line without its newline. False: it says nothing, or names no code: nothing there, in the
 * kernel's half, or beyond the end. */
bool perf_map__parse_line(const char *line, size_t len, struct perf_map_line *ret);

struct perf_map_counts {
	uint64_t symbols, skipped; /* lines */
};

/* Takes the complete lines that have come since the last call, at most `max` bytes of them. Names
 * stay in the file. Adds to `counts`. Returns how many bytes it took, which may be fewer because
 * @file->refused is set; -ENOSPC for a file that is too large; or as code_index__add(). */
int64_t perf_map__read(struct code_file *file, uint64_t max, uint64_t since_ns,
		       struct code_index *index, struct perf_map_counts *counts);

/* The name of an entry, cut to fit. False: it is not in the file any more. */
bool perf_map__name(struct code_file *file, const struct code_entry *entry, char *buf, size_t size);

#endif
