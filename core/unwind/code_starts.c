// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/unwind/code_starts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/sort.h"
#include "core/base/util.h"

#define PIECE_BYTES (64 << 10)

#define PAGE_BITS	   12
#define PAGES_MAX	   (1 << 20)  /* code beyond 4 GB is no target */
#define FUNCTION_BYTES_MAX (16 << 10) /* of a function that is disassembled up to a call */

/* Opcode and 32-bit distance of `call`, `jmp` and `jcc`. */
#define CALL_BYTES   5
#define BRANCH_BYTES 6

struct marks {
	const struct code_ranges *ranges;
	uint8_t *how;		  /* of each byte of all ranges */
	uint32_t *sites;	  /* of each byte: where it is called, less `lowest` */
	uint64_t *first_of;	  /* of each range: index of its first byte in `how` */
	uint8_t *pages;		  /* of each page from `lowest` on: a range has a byte in it */
	uint64_t lowest, n_pages; /* `lowest`: address of code, less 1 */
};

/* The range that has the address; ranges->n: none does. */
static size_t range_at(const struct code_ranges *ranges, uint64_t vaddr)
{
	size_t n = sorted__count_up_to(ranges->list, ranges->n, sizeof(*ranges->list), vaddr);

	return n && vaddr < ranges->list[n - 1].end ? n - 1 : ranges->n;
}

static void mark(struct marks *marks, uint64_t vaddr, uint8_t how, uint64_t site)
{
	uint64_t page = (vaddr - marks->lowest) >> PAGE_BITS;
	size_t i, at;

	if (page >= marks->n_pages || !marks->pages[page])
		return;
	i = range_at(marks->ranges, vaddr);
	if (i == marks->ranges->n)
		return;
	at = marks->first_of[i] + vaddr - marks->ranges->list[i].start;
	marks->how[at] |= how;
	if (how == CODE_START_CALLED && !marks->sites[at] && site - marks->lowest <= UINT32_MAX &&
	    range_at(marks->ranges, site) == marks->ranges->n)
		marks->sites[at] = site - marks->lowest;
}

static int mark_symbol(void *ctx, uint64_t start, uint64_t end)
{
	(void)end;
	mark(ctx, start, CODE_START_NAMED, 0);
	return 0;
}

/* Bytes of a call or jump that the two bytes may begin; 0: none. */
static size_t branch_bytes(const uint8_t *code)
{
	return (code[0] & 0xfe) == 0xe8			     ? CALL_BYTES
	       : code[0] == 0x0f && (code[1] & 0xf0) == 0x80 ? BRANCH_BYTES
							     : 0;
}

static void search_piece(struct marks *marks, const uint8_t *code, size_t size, uint64_t vaddr)
{
	static const bool begins[256] = { [0x0f] = true, [0xe8] = true, [0xe9] = true };
	int32_t distance;

	for (size_t i = 0; i + BRANCH_BYTES <= size; i++) {
		size_t bytes = begins[code[i]] ? branch_bytes(code + i) : 0;

		if (!bytes)
			continue;
		memcpy(&distance, code + i + bytes - sizeof(distance), sizeof(distance));
		mark(marks, vaddr + i + bytes + distance,
		     code[i] == 0xe8 ? CODE_START_CALLED : CODE_START_JUMPED, vaddr + i);
	}
}

/* Pieces overlap, so that no instruction lies in two of them. */
static int search(const struct elf_file *file, struct marks *marks)
{
	uint8_t *piece = malloc(PIECE_BYTES);
	int rc = piece ? 0 : -ENOMEM;

	for (size_t i = 0; i < file->n_segments && !rc; i++) {
		const struct elf_segment *segment = &file->segments[i];

		for (uint64_t at = 0; segment->exec && at < segment->filesz && !rc;
		     at += PIECE_BYTES - BRANCH_BYTES + 1) {
			size_t n = min_of(segment->filesz - at, (uint64_t)PIECE_BYTES);

			rc = elf_file__read(file, segment->vaddr + at, piece, n);
			if (rc == -EFAULT) { /* cut short */
				rc = 0;
				break;
			}
			if (!rc)
				search_piece(marks, piece, n, segment->vaddr + at);
			rc = rc ?: quota__look();
		}
	}
	free(piece);
	return rc;
}

static uint64_t lowest_code(const struct elf_file *file)
{
	uint64_t ret = UINT64_MAX;

	for (size_t i = 0; i < file->n_segments; i++)
		if (file->segments[i].exec)
			ret = min_of(ret, file->segments[i].vaddr);
	return ret;
}

static int take(const struct marks *marks, struct code_starts *ret)
{
	for (size_t i = 0; i < marks->ranges->n; i++) {
		const struct code_range *range = &marks->ranges->list[i];

		for (uint64_t vaddr = range->start; vaddr < range->end; vaddr++) {
			size_t at = marks->first_of[i] + vaddr - range->start;
			struct code_start start = { .vaddr = vaddr, .how = marks->how[at] };

			if (!start.how)
				continue;
			if (array__reserve(&ret->list, &ret->cap, ret->n + 1, sizeof(*ret->list)))
				return -ENOMEM;
			if (marks->sites[at])
				start.site = marks->lowest + marks->sites[at];
			ret->list[ret->n++] = start;
		}
	}
	return 0;
}

/* 0 or -ENOMEM. */
static int prepare(const struct elf_file *file, struct marks *marks)
{
	const struct code_ranges *ranges = marks->ranges;
	uint64_t bytes = 0;

	marks->lowest = lowest_code(file) - 1;
	marks->n_pages =
		ranges->n ? ((ranges->list[ranges->n - 1].end - marks->lowest) >> PAGE_BITS) + 1
			  : 0;
	if (marks->n_pages > PAGES_MAX)
		marks->n_pages = PAGES_MAX;
	marks->first_of = calloc(ranges->n + 1, sizeof(*marks->first_of));
	marks->pages = calloc(marks->n_pages + 1, sizeof(*marks->pages));
	if (!marks->first_of || !marks->pages)
		return -ENOMEM;
	for (size_t i = 0; i < ranges->n; i++) {
		const struct code_range *range = &ranges->list[i];
		uint64_t page = (range->start - marks->lowest) >> PAGE_BITS;

		marks->first_of[i] = bytes;
		bytes += range->end - range->start;
		for (; page <= (range->end - marks->lowest) >> PAGE_BITS && page < marks->n_pages;
		     page++)
			marks->pages[page] = true;
	}
	marks->how = calloc(bytes + 1, sizeof(*marks->how));
	marks->sites = calloc(bytes + 1, sizeof(*marks->sites));
	return marks->how && marks->sites ? 0 : -ENOMEM;
}

int code_starts__find(const struct elf_file *file, const struct code_ranges *ranges,
		      struct code_starts *ret)
{
	struct marks marks = { .ranges = ranges };
	int rc = prepare(file, &marks);

	*ret = (struct code_starts) {};
	if (!rc && ranges->n && marks.lowest != UINT64_MAX - 1)
		rc = code_ranges__each_symbol(file, mark_symbol, &marks) ?: search(file, &marks);
	if (!rc)
		rc = take(&marks, ret);
	free(marks.first_of);
	free(marks.how);
	free(marks.sites);
	free(marks.pages);
	if (rc)
		code_starts__done(ret);
	return rc;
}

bool code_starts__is_called(const struct elf_file *file, const struct code_ranges *ranges,
			    const struct code_start *start)
{
	const struct code_range *function = code_ranges__described(ranges, start->site);
	struct code_steps steps = {};
	const struct code_step *step;
	bool ret = false;

	if (!start->site || !function || start->site - function->start > FUNCTION_BYTES_MAX)
		return false;
	if (!code_steps__read(&steps, file, function->start, start->site + CALL_BYTES)) {
		step = code_steps__at(&steps, start->site);
		ret = step && step->op == CODE_CALL && step->target == start->vaddr;
	}
	code_steps__done(&steps);
	return ret;
}

void code_starts__done(struct code_starts *starts)
{
	free(starts->list);
	*starts = (struct code_starts) {};
}
