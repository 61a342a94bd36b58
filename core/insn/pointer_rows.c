// SPDX-License-Identifier: GPL-2.0-or-later
/* Rows of code that is compiled with frame pointers and without call frame information. Such code
 * is in whole programs, and in a runtime that compiles its own functions at build time.
 *
 * `push %rbp; mov %rsp,%rbp` sets a frame pointer. If a function begins with it, the frame is in
 * rbp in the whole function except in these instructions and in the last ones. The kernel half
 * recognizes both by their bytes. If the prologue is later in the function, a path that leaves the
 * function before it has no frame. Code after a call has one, because a compiler sets up the frame
 * before the first call. A function without these bytes, as in assembly, proves nothing.
 *
 * So the starts of functions are needed, above all of those without a prologue. A start is aligned
 * to 16 bytes. A call leads to it, or the linker's filling (`int3`) precedes it. Code whose start
 * is not found counts as part of the function before it. A prologue after a return may be in a
 * function's part for rare cases. */
#include "core/insn/pointer_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/insn/insn_ranges.h"

/* Bytes of code per prologue, at most: see FRAME_POINTER_BYTES of insn_ranges.c. */
#define BYTES_PER_PROLOGUE 1024
#define INSN_BYTES_MIN	   (64 << 10) /* bytes of a range; a smaller one is no evidence */
#define RANGE_BYTES_MAX	   (1ULL << 30)

#define ALIGN	    16
#define BLOCK_BYTES (1 << 20) /* a multiple of ALIGN */
#define BEFORE	    ALIGN     /* bytes that are read before a block */
#define AFTER	    16	      /* bytes that are read after a block: a prologue, or a call */

#define OTHER_BYTES 4096
#define OTHER_NEAR  4

#define CALL	   0xe8
#define CALL_BYTES 5
#define INT3	   0xcc
#define RET	   0xc3

#define KEEPS_ALL (KEEPS_POINTERS | KEEPS_CALLERS | KEEPS_LEAVES)

struct scan {
	const struct elf_file *file;
	uint64_t start, end; /* link-time addresses; @start is a multiple of ALIGN */
	uint8_t *called;     /* owned; a bit for each ALIGN bytes: a call leads there */
	size_t n_prologues, bytes_per_prologue;
	uint8_t *block;	    /* owned; BEFORE + BLOCK_BYTES + AFTER bytes */
	uint64_t at;	    /* link-time address of the block */
	size_t n;	    /* bytes of code in it */
	uint8_t *other;	    /* owned; for each OTHER_BYTES: contains code of another compiler */
	uint64_t n_pages;   /* number of elements of @other */
	bool is_whole;	    /* true: code of a file; false: code of a runtime's compiler */
	unsigned int least; /* flags of code without a prologue */
	unsigned int now;   /* flags of the last row */
	cfi_row_fn row;
	void *ctx;
};

/* --- blocks --- */

/* Reads the block at @at. Bytes outside the range are 0. Returns 0 or a negative errno. */
static int read_block(struct scan *scan, uint64_t at)
{
	uint64_t from = at - min_of(at - scan->start, (uint64_t)BEFORE), to;
	int ret = quota__look();

	scan->at = at;
	scan->n = min_of(scan->end - at, (uint64_t)BLOCK_BYTES);
	to = min_of(scan->end, at + scan->n + AFTER);
	memset(scan->block, 0, BEFORE + BLOCK_BYTES + AFTER);
	return ret
		       ?: elf_file__read(scan->file, from, scan->block + BEFORE - (at - from),
					 to - from);
}

static const uint8_t *code_at(const struct scan *scan, size_t i)
{
	return scan->block + BEFORE + i;
}

static bool is_prologue(const uint8_t *code)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	static const uint8_t forms[][4] = { { 0x55, 0x48, 0x89, 0xe5 },
					    { 0x55, 0x48, 0x8b, 0xec } };

	if (!memcmp(code, endbr64, sizeof(endbr64)))
		code += sizeof(endbr64);
	return !memcmp(code, forms[0], sizeof(forms[0])) ||
	       !memcmp(code, forms[1], sizeof(forms[1]));
}

/* --- called functions and prologues --- */

static void note_call(struct scan *scan, size_t i)
{
	uint64_t target;
	int32_t distance;

	memcpy(&distance, code_at(scan, i) + 1, sizeof(distance));
	target = scan->at + i + CALL_BYTES + distance;
	if (target >= scan->start && target < scan->end && target % ALIGN == 0) {
		target = (target - scan->start) / ALIGN;
		scan->called[target / 8] |= 1U << target % 8;
	}
}

/* Returns true for `mov %rbp,%rsp; pop %rbp` in the encoding of run-time compilers, which
 * assemblers and C compilers never use. In code of run-time compilers, more instructions may follow
 * before the return or jump. */
static bool is_of_other(const uint8_t *code)
{
	static const uint8_t form[] = { 0x48, 0x8b, 0xe5, 0x5d };

	return !memcmp(code, form, sizeof(form));
}

static void note_block(struct scan *scan)
{
	for (size_t i = 0; i < scan->n; i++) {
		const uint8_t *code = code_at(scan, i);

		if (*code == CALL)
			note_call(scan, i);
		else if (*code == 0x55)
			scan->n_prologues += is_prologue(code);
		else if (*code == 0x48 && is_of_other(code))
			scan->other[(scan->at + i - scan->start) / OTHER_BYTES] = 1;
	}
}

/* --- rows --- */

static bool is_called(const struct scan *scan, size_t i)
{
	size_t number = (scan->at + i - scan->start) / ALIGN;

	return scan->called[number / 8] & 1U << number % 8;
}

/* Returns true if a linker's filling precedes this aligned address. */
static bool is_after_filling(const uint8_t *code)
{
	return code[-1] == INT3 && (code[-2] == INT3 || code[-2] == RET);
}

/* Returns true if code of another compiler is within OTHER_NEAR pages of 4 KB. */
static bool is_near_other(const struct scan *scan, size_t i)
{
	uint64_t page = (scan->at + i - scan->start) / OTHER_BYTES;
	uint64_t first = page - min_of(page, (uint64_t)OTHER_NEAR);

	for (uint64_t k = first; k <= min_of(page + OTHER_NEAR, scan->n_pages - 1); k++)
		if (scan->other[k])
			return true;
	return !scan->is_whole;
}

/* Returns the flags of the function that starts at this aligned address, or 0 if no function starts
 * there. */
static unsigned int start_flags(const struct scan *scan, size_t i)
{
	const uint8_t *code = code_at(scan, i);
	bool apart = is_called(scan, i) || is_after_filling(code) || scan->at + i == scan->start;

	if (is_prologue(code) && (apart || code[-1] == INT3))
		return is_near_other(scan, i) ? KEEPS_POINTERS | KEEPS_CALLERS : KEEPS_ALL;
	return apart ? scan->least : 0;
}

static int put(struct scan *scan, size_t i, unsigned int flags)
{
	const struct unwind_rule rule = { .kind = UNWIND_POINTER, .flags = flags };

	if (flags == scan->now)
		return 0;
	scan->now = flags;
	return scan->row(scan->ctx, scan->at + i, &rule);
}

/* Returns the new flags of code from @i on, or 0 if they do not change. */
static unsigned int flags_at(const struct scan *scan, size_t i)
{
	const uint8_t *code = code_at(scan, i);
	unsigned int flags = i % ALIGN ? 0 : start_flags(scan, i);

	if (!flags && !(scan->now & KEEPS_CALLERS) && *code == 0x55 && is_prologue(code))
		flags = KEEPS_POINTERS | KEEPS_CALLERS;
	return flags;
}

static int put_block(struct scan *scan)
{
	int ret = 0;

	for (size_t i = 0; i < scan->n && !ret; i++) {
		unsigned int flags = flags_at(scan, i);

		if (flags)
			ret = put(scan, i, flags);
	}
	return ret;
}

static int each_block(struct scan *scan, int (*on_block)(struct scan *scan))
{
	int ret = 0;

	for (uint64_t at = scan->start; at < scan->end && !ret; at += BLOCK_BYTES)
		ret = read_block(scan, at) ?: on_block(scan);
	return ret;
}

static int on_note(struct scan *scan)
{
	note_block(scan);
	return 0;
}

static int read_range(struct scan *scan)
{
	static const struct unwind_rule none = { .kind = UNWIND_NONE };
	uint64_t bytes = scan->end - scan->start;
	int ret;

	if (scan->start >= scan->end || bytes > RANGE_BYTES_MAX)
		return -ENOENT;
	scan->called = calloc(bytes / ALIGN / 8 + 1, 1);
	scan->block = malloc(BEFORE + BLOCK_BYTES + AFTER);
	scan->n_pages = bytes / OTHER_BYTES + 1;
	scan->other = calloc(scan->n_pages, 1);
	ret = scan->called && scan->block && scan->other ? each_block(scan, on_note) : -ENOMEM;
	if (!ret && scan->n_prologues < bytes / scan->bytes_per_prologue)
		ret = -ENOENT;
	if (!ret)
		ret = each_block(scan, put_block) ?: scan->row(scan->ctx, scan->end, &none);
	free(scan->called);
	free(scan->block);
	free(scan->other);
	return ret == -EFAULT ? -ENOENT : ret;
}

static uint64_t align(uint64_t vaddr)
{
	return (vaddr + ALIGN - 1) & -(uint64_t)ALIGN;
}

int pointer_rows__range(const struct elf_file *file, const struct insn_range *range, cfi_row_fn row,
			void *ctx)
{
	struct scan scan = { .file = file,
			     .start = align(range->start),
			     .end = range->end,
			     .bytes_per_prologue = SIZE_MAX,
			     .least = KEEPS_POINTERS | KEEPS_CALLERS,
			     .row = row,
			     .ctx = ctx };

	return read_range(&scan);
}

int pointer_rows__read(const struct elf_file *file, cfi_row_fn row, void *ctx)
{
	struct insn_ranges ranges = {};
	int ret = insn_ranges__lacks_frames(file) ? insn_ranges__find(file, &ranges) : -ENOENT;
	bool any = false;

	for (size_t i = 0; i < ranges.n && !ret; i++) {
		struct scan scan = { .file = file,
				     .start = align(ranges.list[i].start),
				     .end = ranges.list[i].end,
				     .bytes_per_prologue = BYTES_PER_PROLOGUE,
				     .is_whole = true,
				     .least = KEEPS_POINTERS,
				     .row = row,
				     .ctx = ctx };

		if (ranges.list[i].end - ranges.list[i].start < INSN_BYTES_MIN)
			continue;
		ret = read_range(&scan);
		any |= !ret;
		ret = ret == -ENOENT ? 0 : ret;
	}
	insn_ranges__done(&ranges);
	return ret ?: any ? 0 : -ENOENT;
}
