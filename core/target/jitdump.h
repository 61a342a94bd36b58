/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JITDUMP_H
#define BRAID_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/target/code_file.h"
#include "core/target/code_index.h"

/* Jitdump files (jit-PID.dump): what code a JIT compiler made, where, and when to the nanosecond,
 * with source lines, and where code was moved to. The code itself is in there, too, and is skipped.
 * Linux, tools/perf/Documentation/jitdump-specification.txt, version 1. */

struct jitdump {
	bool started;	/* the header was read */
	bool broken;	/* what it is cannot be told: nothing more is read */
	bool own_clock; /* its times are no CLOCK_MONOTONIC */
	/* The debug record before this place in the file is of the code at ...; it precedes that
	 * code's own record. 0: none. */
	uint32_t lines;
	uint64_t lines_of;
	uint64_t symbols, skipped; /* records of code */
};

/* Takes the complete records that have come since the last call, up to `max` bytes of them. Code
 * whose time is not known, or later than now, counts from `since_ns` on. Returns how many bytes it
 * took, which may be fewer because @file->refused is set; -ENOSPC for a file that is too large; or
 * as code_index__add(). */
int64_t jitdump__read(struct jitdump *dump, struct code_file *file, uint64_t max, uint64_t since_ns,
		      uint64_t now_ns, struct code_index *index);

/* The name of an entry, cut to fit. False: it is not in the file any more. */
bool jitdump__name(struct code_file *file, const struct code_entry *entry, char *buf, size_t size);

/* File and line of the code at `address`, which lies in the entry. `skew` is what the writer adds
 * to the addresses of lines. False: none, or what is there makes no sense. */
bool jitdump__line(struct code_file *file, const struct code_entry *entry, uint64_t address,
		   uint32_t skew, char *buf, size_t size, uint32_t *ret_line);

#endif
