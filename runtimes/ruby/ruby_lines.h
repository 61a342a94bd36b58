/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUBY_LINES_H
#define BRAID_RUBY_LINES_H

#include <stddef.h>
#include <stdint.h>

/* The line table of an iseq. The i-th of `n_entries` entries (struct iseq_insn_info_entry, of
 * `entry_size` bytes) is for the instructions from the i-th set position up to the next. The
 * positions are a succinct bit vector (iseq.c, struct succ_index_table). Untrusted. */
struct ruby_lines {
	const uint8_t *positions;
	size_t positions_size; /* bytes */
	const uint8_t *entries;
	size_t n_entries, entry_size;
};

/* Returns the maximum size in bytes of the bit vector of an iseq of `iseq_size` words. */
size_t ruby_lines__positions_size(uint32_t iseq_size);

/* Returns the line of the instruction at `position`, in words; 0: not in the table. */
uint32_t ruby_lines__find(const struct ruby_lines *lines, uint32_t position);

#endif
