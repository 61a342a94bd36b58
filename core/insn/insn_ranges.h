/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_INSN_RANGES_H
#define BRAID_INSN_RANGES_H

#include "core/insn/insn_steps.h"

/* The code of a file that call frame information does not cover, within the limits for reading it.
 */

#define INSN_RANGES_MAX 4096	    /* ranges of code between described functions */
#define INSN_BYTES_MAX	(256 << 20) /* bytes of all these ranges */

/* Rules of more code than this are built only for blocks with samples. Reading these bytes takes
 * about 30 ms of CPU time. */
#define INSN_BYTES_AT_ONCE (256 << 10)

struct insn_range { /* link-time addresses */
	uint64_t start, end;
};

struct insn_ranges {
	struct insn_range *list; /* owned; ascending */
	size_t n, cap;
	struct insn_range *described; /* owned; functions with a frame description, by start */
	size_t n_described;
	bool later; /* the code is too large to be read at once */
	bool named; /* all code of a file without call frame information (up to 2 MiB), or functions
		       of a static program that have symbols and no description. Symbols and tables
		       of jumps help there; false: other code, whose own bytes must prove the rules
		     */
};

/* Returns true if the file has so little call frame information that it describes only the PLT. */
bool insn_ranges__lacks_frames(const struct elf_file *file);

/* Finds the ranges to read. Returns 0, also if there are none, -ENOMEM, -EFBIG or -EINTR. */
int insn_ranges__find(const struct elf_file *file, struct insn_ranges *ret);
bool insn_ranges__hold(const struct insn_ranges *ranges, uint64_t vaddr);

/* Returns the function with a frame description that covers @vaddr, or NULL. */
const struct insn_range *insn_ranges__described(const struct insn_ranges *ranges, uint64_t vaddr);

/* Returns true if no frame description covers @vaddr, or if one starts there: a jump from code
 * without a description may enter that function. */
bool insn_ranges__may_enter(const struct insn_ranges *ranges, uint64_t vaddr);
void insn_ranges__done(struct insn_ranges *ranges); /* idempotent */

/* Calls @function with each function that has a symbol. A negative return value ends the walk and
 * is propagated. Returns 0, -EFBIG or -EINTR otherwise. */
typedef int (*insn_symbol_fn)(void *ctx, uint64_t start, uint64_t end);
int insn_ranges__each_symbol(const struct elf_file *file, insn_symbol_fn function, void *ctx);

/* Returns 1 if @range was compiled with frame pointers, else 0, or -ENOMEM. Returns 1 also if the
 * file does not contain the whole range. */
int insn_range__has_frame_pointers(const struct elf_file *file, const struct insn_range *range);

struct insn_starts;

/* Reads the instructions of the ranges, and marks the starts of functions. @starts: from the rest
 * of the file, or NULL. Returns 0, -ENOMEM, -EFBIG or -EINTR. */
int insn_ranges__read(const struct elf_file *file, const struct insn_ranges *ranges,
		      const struct insn_starts *starts, struct insn_steps *ret);

#endif
