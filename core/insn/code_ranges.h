/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_RANGES_H
#define BRAID_CODE_RANGES_H

#include "core/insn/code_steps.h"

/* The code of a file that call frame information leaves out, as far as it is to be read. */

#define CODE_RANGES_MAX 4096	    /* of code in between of what is described */
#define CODE_BYTES_MAX	(256 << 20) /* of all of these */

/* Rules of more code than this are made where samples fall: about 30 ms of CPU time. */
#define CODE_BYTES_AT_ONCE (256 << 10)

struct code_range { /* link-time addresses */
	uint64_t start, end;
};

struct code_ranges {
	struct code_range *list; /* owned; ascending */
	size_t n, cap;
	struct code_range *described; /* owned; functions with a frame description, by start */
	size_t n_described;
	bool later; /* it is too much to be read at once */
	bool named; /* it is that of a library or program without any, whose symbols and tables of
		     * jumps say more of it; else what lies between the functions that are
		     * described, of which its own bytes have to say all */
};

/* Returns true if call frame information takes so little of the file that it describes nothing but
 * the PLT. */
bool code_ranges__lacks_frames(const struct elf_file *file);

/* 0, also where there is none; -ENOMEM, -EFBIG, -EINTR. */
int code_ranges__find(const struct elf_file *file, struct code_ranges *ret);
bool code_ranges__hold(const struct code_ranges *ranges, uint64_t vaddr);

/* Returns the function with a frame description that covers @vaddr, or NULL. */
const struct code_range *code_ranges__described(const struct code_ranges *ranges, uint64_t vaddr);

/* Returns true if no frame description covers @vaddr, or if one starts there: a jump from code
 * without a description may lead there at the end of a function. */
bool code_ranges__may_enter(const struct code_ranges *ranges, uint64_t vaddr);
void code_ranges__done(struct code_ranges *ranges); /* idempotent */

/* The functions that have a symbol, by the tables of symbols. A negative return ends the walk and
 * is propagated; else 0, -EFBIG or -EINTR. */
typedef int (*code_symbol_fn)(void *ctx, uint64_t start, uint64_t end);
int code_ranges__each_symbol(const struct elf_file *file, code_symbol_fn function, void *ctx);

/* Returns 1 if a compiler that uses frame pointers made the range, else 0, or -ENOMEM. Returns 1
 * also if the file does not hold all of the range. */
int code_range__has_frame_pointers(const struct elf_file *file, const struct code_range *range);

struct code_starts;

/* Its instructions, and where functions start; @starts: as the rest of the file says, or NULL. 0,
 * -ENOMEM, -EFBIG or -EINTR. */
int code_ranges__read(const struct elf_file *file, const struct code_ranges *ranges,
		      const struct code_starts *starts, struct code_steps *ret);

#endif
