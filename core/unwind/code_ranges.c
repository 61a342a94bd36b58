// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/unwind/code_ranges.h"

#include <errno.h>
#include <stdlib.h>

#include "core/base/util.h"
#include "core/elf/cfi_entries.h"
#include "core/elf/elf_symbols.h"

/* A file has no call frame information if it takes less than so small a part of the code's bytes:
 * it is that of the PLT. Else it takes a tenth, or, of huge vectorised functions, a hundredth. */
#define FRAMES_SHARE 1024

/* A C library that is linked in has more code than that; what other static programs have without
 * frame descriptions, of assembly, is not worth the look. */
#define GAPS_BYTES_MIN (16 << 10)

/* Of a function in assembly, whose size nobody has said. Where it is smaller the next one begins.
 */
#define UNSIZED_BYTES 1024

struct range {
	uint64_t start, end;
};

struct ranges {
	struct range *list;
	size_t n, cap;
};

static int add(struct ranges *ranges, uint64_t start, uint64_t end)
{
	if (start >= end)
		return 0;
	if (array__reserve(&ranges->list, &ranges->cap, ranges->n + 1, sizeof(*ranges->list)))
		return -ENOMEM;
	ranges->list[ranges->n++] = (struct range) { start, end };
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* In order, and apart. */
static void settle(struct ranges *ranges)
{
	size_t n = 0;

	if (ranges->n)
		qsort(ranges->list, ranges->n, sizeof(*ranges->list), compare);
	for (size_t i = 0; i < ranges->n; i++) {
		const struct range *range = &ranges->list[i];

		if (n && range->start <= ranges->list[n - 1].end)
			ranges->list[n - 1].end = max_of(ranges->list[n - 1].end, range->end);
		else
			ranges->list[n++] = *range;
	}
	ranges->n = n;
}

/* --- what is covered, and what there is --- */

static int on_covered(void *ctx, uint64_t start, uint64_t end)
{
	return add(ctx, start, end);
}

/* What of it the file has in a segment that may be executed. */
static int add_code(const struct elf_file *file, uint64_t start, uint64_t size, struct ranges *ret)
{
	uint64_t end = size > UINT64_MAX - start ? UINT64_MAX : start + size;
	int rc = 0;

	for (size_t i = 0; i < file->n_segments && !rc; i++) {
		const struct elf_segment *segment = &file->segments[i];

		if (segment->exec)
			rc = add(ret, max_of(start, segment->vaddr),
				 min_of(end, segment->vaddr + segment->filesz));
	}
	return rc;
}

/* Sections of code; where there are no headers of sections, all that may be executed. */
static int each_code(const struct elf_file *file, struct ranges *ret)
{
	Elf_Scn *section = NULL;
	GElf_Shdr shdr;
	int rc = 0;

	while (!rc && (section = elf_nextscn(file->elf, section)))
		if (gelf_getshdr(section, &shdr) && shdr.sh_flags & SHF_EXECINSTR &&
		    shdr.sh_type == SHT_PROGBITS && shdr.sh_addr)
			rc = add_code(file, shdr.sh_addr, shdr.sh_size, ret);
	if (!rc && !elf_nextscn(file->elf, NULL))
		rc = add_code(file, 0, UINT64_MAX, ret);
	settle(ret);
	return rc;
}

static bool has_frames(const struct elf_file *file, uint64_t code_bytes)
{
	const Elf_Data *eh = elf_file__section(file, ".eh_frame", NULL);
	const Elf_Data *debug = elf_file__section(file, ".debug_frame", NULL);

	return ((eh ? eh->d_size : 0) + (debug ? debug->d_size : 0)) * FRAMES_SHARE >= code_bytes;
}

/* Nothing else can be linked into it later. */
static bool is_static(const struct elf_file *file)
{
	GElf_Phdr phdr;
	size_t n;

	if (file->type != ET_EXEC || elf_getphdrnum(file->elf, &n))
		return false;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(file->elf, i, &phdr) && phdr.p_type == PT_INTERP)
			return false;
	return true;
}

typedef int (*function_fn)(void *ctx, uint64_t start, uint64_t end);

static int each_function(const struct elf_file *file, function_fn function, void *ctx)
{
	static const char *const sections[] = { ".dynsym", ".symtab" };
	struct elf_symbols symbols;
	int ret = 0;

	for (size_t k = 0; k < ARRAY_SIZE(sections); k++) {
		if (!elf_symbols__open(file, sections[k], &symbols))
			continue;
		for (size_t i = 0; i < symbols.n && !ret; i++) {
			GElf_Sym sym;

			if (!elf_symbols__get(&symbols, i, &sym) || sym.st_shndx == SHN_UNDEF ||
			    GELF_ST_TYPE(sym.st_info) != STT_FUNC ||
			    sym.st_value + sym.st_size < sym.st_value)
				continue;
			ret = function(ctx, sym.st_value, sym.st_value + sym.st_size);
		}
	}
	return ret;
}

/* --- reading it --- */

/* What of the code no description covers. */
static int subtract(const struct ranges *code, const struct ranges *covered, struct ranges *ret)
{
	size_t k = 0;
	int rc = 0;

	for (size_t i = 0; i < code->n && !rc; i++) {
		uint64_t at = code->list[i].start, end = code->list[i].end;

		while (k < covered->n && covered->list[k].end <= at)
			k++;
		for (size_t j = k; at < end && !rc; j++) {
			rc = add(ret, at,
				 j < covered->n ? min_of(covered->list[j].start, end) : end);
			at = j < covered->n ? max_of(at, covered->list[j].end) : end;
		}
	}
	return rc;
}

static uint64_t bytes_of(const struct ranges *ranges)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < ranges->n; i++)
		bytes += ranges->list[i].end - ranges->list[i].start;
	return bytes;
}

struct functions {
	const struct ranges *code;
	struct ranges *found;
};

/* As far as it lies in code. */
static int on_function(void *ctx, uint64_t start, uint64_t end)
{
	const struct functions *functions = ctx;

	end = max_of(end, start + UNSIZED_BYTES * (start == end));
	for (size_t i = 0; i < functions->code->n; i++) {
		const struct range *code = &functions->code->list[i];

		if (start >= code->start && start < code->end)
			return add(functions->found, start, min_of(end, code->end));
	}
	return 0;
}

/* Nothing where there is too little of it. */
static int find_gaps(const struct elf_file *file, struct ranges *ret)
{
	struct ranges code = {}, named = {}, covered = {};
	struct functions functions = { &code, &named };
	bool whole;
	int rc = each_code(file, &code);

	whole = !has_frames(file, bytes_of(&code));
	if (!rc && !whole && is_static(file))
		rc = each_function(file, on_function, &functions);
	settle(&named);
	if (!rc && (whole || named.n))
		rc = cfi_entries__functions(file, on_covered, &covered, NULL);
	settle(&covered);
	if (rc != -ENOMEM)
		rc = subtract(whole ? &code : &named, &covered, ret);
	if (!whole && bytes_of(ret) < GAPS_BYTES_MIN)
		ret->n = 0;
	free(code.list);
	free(named.list);
	free(covered.list);
	return rc;
}

static int mark_entry(void *ctx, uint64_t start, uint64_t end)
{
	struct code_step *step = code_steps__at(ctx, start);

	(void)end;
	if (step)
		step->entry = true;
	return 0;
}

static void mark_called(struct code_steps *steps)
{
	for (size_t i = 0; i < steps->n; i++)
		if (steps->list[i].op == CODE_CALL && steps->list[i].target)
			mark_entry(steps, steps->list[i].target, 0);
}

bool code_ranges__any(const struct elf_file *file)
{
	struct ranges gaps = {};
	bool ret = !find_gaps(file, &gaps) && gaps.n;

	free(gaps.list);
	return ret;
}

int code_ranges__read(const struct elf_file *file, struct code_steps *ret)
{
	struct ranges gaps = {};
	int rc = find_gaps(file, &gaps);

	for (size_t i = 0; i < gaps.n && !rc; i++)
		rc = code_steps__read(ret, file, gaps.list[i].start, gaps.list[i].end);
	if (!rc && ret->n) {
		each_function(file, mark_entry, ret);
		mark_called(ret);
	}
	free(gaps.list);
	return rc == -ENOMEM ? rc : 0;
}
