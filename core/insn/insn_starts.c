// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/insn/insn_starts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/sort.h"
#include "core/base/util.h"

#define PIECE_BYTES (64 << 10)

#define PAGE_BITS	   12
#define PAGES_MAX	   (1 << 20)  /* code beyond 4 GB is no target */
#define FUNCTION_BYTES_MAX (16 << 10) /* bytes of a function that is disassembled up to a call */

/* Bytes of opcode and 32-bit distance of `call` and `jmp`, and of `jcc`. */
#define CALL_BYTES   5
#define BRANCH_BYTES 6

/* Limit of unsorted entries. A function has an entry for each of its calls. Further entries cause a
 * merge, and a file with more than FOUND_MAX different starts is over the budget. */
#define FOUND_MAX (2U << 20)

struct marks {
	const struct elf_file *file;
	const struct insn_ranges *ranges;
	struct insn_starts found; /* not sorted; an address may occur several times */
	uint8_t *pages;		  /* by page from @lowest on: the page has bytes of a range */
	uint64_t lowest, n_pages; /* @lowest: lowest address of code, less 1 */
};

/* Returns the index of the range that contains @vaddr, or ranges->n. */
static size_t range_at(const struct insn_ranges *ranges, uint64_t vaddr)
{
	size_t n = sorted__count_up_to(ranges->list, ranges->n, sizeof(*ranges->list), vaddr);

	return n && vaddr < ranges->list[n - 1].end ? n - 1 : ranges->n;
}

static int by_address(const void *a, const void *b)
{
	const struct code_start *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return x->site < y->site ? -1 : x->site > y->site;
}

/* Merges the entries of each address into one, with the first of its sites. */
static int merge(struct insn_starts *starts)
{
	size_t n = 0;
	int rc = sort__array(starts->list, starts->n, sizeof(*starts->list), by_address);

	for (size_t i = 0; i < starts->n && !rc; i++) {
		const struct code_start start = starts->list[i];
		struct code_start *last = n ? &starts->list[n - 1] : NULL;

		if (last && last->vaddr == start.vaddr) {
			last->how |= start.how;
			last->site = last->site ?: start.site;
		} else {
			starts->list[n++] = start;
		}
	}
	starts->n = rc ? starts->n : n;
	return rc;
}

/* Adds an entry for @vaddr if it is in a range. Returns 0, -ENOMEM or -EFBIG. */
static int mark(struct marks *marks, uint64_t vaddr, uint8_t how, uint64_t site)
{
	uint64_t page = (vaddr - marks->lowest) >> PAGE_BITS;
	struct insn_starts *found = &marks->found;
	int rc = 0;

	if (page >= marks->n_pages || !marks->pages[page] ||
	    range_at(marks->ranges, vaddr) == marks->ranges->n)
		return 0;
	if (found->n == FOUND_MAX)
		rc = merge(found);
	if (!rc && found->n == FOUND_MAX)
		rc = quota__refuse(marks->file->account);
	if (!rc && array__reserve(&found->list, &found->cap, found->n + 1, sizeof(*found->list)))
		rc = -ENOMEM;
	if (rc)
		return rc;
	if (how != INSN_START_CALLED || range_at(marks->ranges, site) != marks->ranges->n)
		site = 0;
	found->list[found->n++] = (struct code_start) { .vaddr = vaddr, .how = how, .site = site };
	return 0;
}

static int mark_symbol(void *ctx, uint64_t start, uint64_t end)
{
	(void)end;
	return mark(ctx, start, INSN_START_NAMED, 0);
}

/* Returns the size of a call or jump that the two bytes may begin, or 0. */
static size_t branch_bytes(const uint8_t *code)
{
	return (code[0] & 0xfe) == 0xe8			     ? CALL_BYTES
	       : code[0] == 0x0f && (code[1] & 0xf0) == 0x80 ? BRANCH_BYTES
							     : 0;
}

static int search_piece(struct marks *marks, const uint8_t *code, size_t size, uint64_t vaddr)
{
	static const bool begins[256] = { [0x0f] = true, [0xe8] = true, [0xe9] = true };
	int32_t distance;
	int rc = 0;

	for (size_t i = 0; i + BRANCH_BYTES <= size && !rc; i++) {
		size_t bytes = begins[code[i]] ? branch_bytes(code + i) : 0;

		if (!bytes)
			continue;
		memcpy(&distance, code + i + bytes - sizeof(distance), sizeof(distance));
		rc = mark(marks, vaddr + i + bytes + distance,
			  code[i] == 0xe8 ? INSN_START_CALLED : INSN_START_JUMPED, vaddr + i);
	}
	return rc;
}

/* Searches all code for calls and jumps. Pieces overlap, so that each instruction is whole in one
 * of them. */
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
			if (rc == -EFAULT) { /* truncated file */
				rc = 0;
				break;
			}
			if (!rc)
				rc = search_piece(marks, piece, n, segment->vaddr + at);
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

/* Builds the table of pages. Returns 0 or -ENOMEM. */
static int prepare(const struct elf_file *file, struct marks *marks)
{
	const struct insn_ranges *ranges = marks->ranges;

	marks->lowest = lowest_code(file) - 1;
	marks->n_pages =
		ranges->n ? ((ranges->list[ranges->n - 1].end - marks->lowest) >> PAGE_BITS) + 1
			  : 0;
	if (marks->n_pages > PAGES_MAX)
		marks->n_pages = PAGES_MAX;
	marks->pages = calloc(marks->n_pages + 1, sizeof(*marks->pages));
	if (!marks->pages)
		return -ENOMEM;
	for (size_t i = 0; i < ranges->n; i++) {
		const struct insn_range *range = &ranges->list[i];
		uint64_t page = (range->start - marks->lowest) >> PAGE_BITS;

		for (; page <= (range->end - marks->lowest) >> PAGE_BITS && page < marks->n_pages;
		     page++)
			marks->pages[page] = true;
	}
	return 0;
}

int insn_starts__find(const struct elf_file *file, const struct insn_ranges *ranges,
		      struct insn_starts *ret)
{
	struct marks marks = { .file = file, .ranges = ranges };
	int rc = prepare(file, &marks);

	*ret = (struct insn_starts) {};
	if (!rc && ranges->n && marks.lowest != UINT64_MAX - 1)
		rc = insn_ranges__each_symbol(file, mark_symbol, &marks) ?: search(file, &marks);
	if (!rc)
		rc = merge(&marks.found);
	free(marks.pages);
	if (rc)
		insn_starts__done(&marks.found);
	*ret = marks.found;
	return rc;
}

bool insn_starts__is_called(const struct elf_file *file, const struct insn_ranges *ranges,
			    const struct code_start *start)
{
	const struct insn_range *function = insn_ranges__described(ranges, start->site);
	struct insn_steps steps = {};
	const struct insn_step *step;
	bool ret = false;

	if (!start->site || !function || start->site - function->start > FUNCTION_BYTES_MAX)
		return false;
	if (!insn_steps__read(&steps, file, function->start, start->site + CALL_BYTES)) {
		step = insn_steps__at(&steps, start->site);
		ret = step && step->op == INSN_CALL && step->target == start->vaddr;
	}
	insn_steps__done(&steps);
	return ret;
}

void insn_starts__done(struct insn_starts *starts)
{
	free(starts->list);
	*starts = (struct insn_starts) {};
}
