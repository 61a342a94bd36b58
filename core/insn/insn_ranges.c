// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/insn/insn_ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/unwind_rule.h"
#include "core/base/quota.h"
#include "core/base/sort.h"
#include "core/base/util.h"
#include "core/elf/cfi_entries.h"
#include "core/elf/elf_symbols.h"
#include "core/elf/plt.h"
#include "core/insn/insn_starts.h"

/* A file counts as one without call frame information if that information is less than
 * 1/FRAMES_SHARE of the code's bytes: it covers only the PLT. Usually it is a tenth, or a hundredth
 * with huge vectorised functions. */
#define FRAMES_SHARE 1024

/* Minimum of code without frame descriptions in a static program, in bytes. A linked C library has
 * more. Other static programs have less: some assembly, which is not worth the work. */
#define GAPS_BYTES_MIN (16 << 10)

/* Assumed bytes of an assembly function without a size. A smaller function ends where the next one
 * begins. */
#define UNSIZED_BYTES 1024

/* Minimum gap between compiled functions that may be assembly, in bytes. A smaller gap is only
 * padding. OpenBLAS and x265 have 12 MB of assembly. */
#define GAP_BYTES_MIN 64

/* Compilers that use frame pointers emit `push %rbp; mov %rsp,%rbp` at least once in
 * FRAME_POINTER_BYTES bytes. Such code is unwound by its frame pointers. (Seen: one in 860 bytes of
 * such code, one in 4,900 of libvpx's assembly.) */
#define COMPILED_BYTES_MIN  (64 << 10)
#define FRAME_POINTER_BYTES 2048

/* Limit of code that is read as named. A larger amount of code without any description is followed
 * as code between descriptions: block by block, with rules that returns prove. The C library musl
 * has 0.6 MB of code. */
#define NAMED_BYTES_MAX (2 << 20)

/* A range has 16 bytes. The frame descriptions of a file have the same limit. */
#define RANGES_MAX (6U << 20)

static int add(struct insn_ranges *ranges, uint64_t start, uint64_t end)
{
	if (start >= end)
		return 0;
	if (ranges->n >= RANGES_MAX)
		return -EFBIG;
	if (array__reserve(&ranges->list, &ranges->cap, ranges->n + 1, sizeof(*ranges->list)))
		return -ENOMEM;
	ranges->list[ranges->n++] = (struct insn_range) { start, end };
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct insn_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorts the ranges and merges those that overlap or touch. */
static int settle(struct insn_ranges *ranges)
{
	size_t n = 0;
	int rc = sort__array(ranges->list, ranges->n, sizeof(*ranges->list), compare);

	if (rc)
		return rc;
	for (size_t i = 0; i < ranges->n; i++) {
		const struct insn_range *range = &ranges->list[i];

		if (n && range->start <= ranges->list[n - 1].end)
			ranges->list[n - 1].end = max_of(ranges->list[n - 1].end, range->end);
		else
			ranges->list[n++] = *range;
	}
	ranges->n = n;
	return 0;
}

/* --- code and frame descriptions --- */

/* Adds the part of [@start, @start + @size) that the file has in executable segments. */
static int add_code(const struct elf_file *file, uint64_t start, uint64_t size,
		    struct insn_ranges *ret)
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

/* Adds the sections of code, or all executable segments if there are no section headers. */
static int each_code(const struct elf_file *file, struct insn_ranges *ret)
{
	Elf_Scn *section = NULL;
	GElf_Shdr shdr;
	uint64_t n = 0;
	int rc = 0;

	while (!rc && (section = elf_nextscn(file->elf, section)) && !(rc = quota__look_at(n++)))
		if (gelf_getshdr(section, &shdr) && shdr.sh_flags & SHF_EXECINSTR &&
		    shdr.sh_type == SHT_PROGBITS && shdr.sh_addr)
			rc = add_code(file, shdr.sh_addr, shdr.sh_size, ret);
	if (!rc && !elf_nextscn(file->elf, NULL))
		rc = add_code(file, 0, UINT64_MAX, ret);
	return rc ? rc : settle(ret);
}

static bool has_frames(const struct elf_file *file, uint64_t code_bytes)
{
	const Elf_Data *eh = elf_file__section(file, ".eh_frame", NULL);
	const Elf_Data *debug = elf_file__section(file, ".debug_frame", NULL);

	return ((eh ? eh->d_size : 0) + (debug ? debug->d_size : 0)) * FRAMES_SHARE >= code_bytes;
}

static uint64_t bytes_of(const struct insn_ranges *ranges)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < ranges->n; i++)
		bytes += ranges->list[i].end - ranges->list[i].start;
	return bytes;
}

bool insn_ranges__lacks_frames(const struct elf_file *file)
{
	struct insn_ranges code = {};
	bool lacks = !each_code(file, &code) && !has_frames(file, bytes_of(&code));

	free(code.list);
	return lacks;
}

/* Returns true for a static program, into which no library can be linked later. */
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

int insn_ranges__each_symbol(const struct elf_file *file, insn_symbol_fn function, void *ctx)
{
	static const char *const sections[] = { ".dynsym", ".symtab" };
	struct elf_symbols symbols;
	int ret = 0;

	for (size_t k = 0; k < ARRAY_SIZE(sections); k++) {
		if (!elf_symbols__open(file, sections[k], &symbols))
			continue;
		for (size_t i = 0; i < symbols.n && !ret; i++) {
			GElf_Sym sym;

			ret = quota__look_at(i);
			if (ret || !elf_symbols__get(&symbols, i, &sym) ||
			    sym.st_shndx == SHN_UNDEF || GELF_ST_TYPE(sym.st_info) != STT_FUNC ||
			    sym.st_value + sym.st_size < sym.st_value)
				continue;
			ret = function(ctx, sym.st_value, sym.st_value + sym.st_size);
		}
	}
	return ret;
}

/* --- ranges to read --- */

/* Adds the parts of @code that no description covers to @ret. */
static int subtract(const struct insn_ranges *code, const struct insn_ranges *covered,
		    struct insn_ranges *ret)
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

struct functions {
	const struct insn_ranges *code;
	struct insn_ranges *found;
};

/* Adds the part of a function that is in code. */
static int on_function(void *ctx, uint64_t start, uint64_t end)
{
	const struct functions *functions = ctx;

	end = max_of(end, start + UNSIZED_BYTES * (start == end));
	for (size_t i = 0; i < functions->code->n; i++) {
		const struct insn_range *code = &functions->code->list[i];

		if (start >= code->start && start < code->end)
			return add(functions->found, start, min_of(end, code->end));
	}
	return 0;
}

/* Adds the code of a static program that has symbols and no descriptions. Adds nothing if this code
 * has fewer than GAPS_BYTES_MIN bytes. */
static int find_named(const struct elf_file *file, const struct insn_ranges *code,
		      const struct insn_ranges *covered, struct insn_ranges *ret)
{
	struct insn_ranges named = {};
	struct functions functions = { code, &named };
	int rc = insn_ranges__each_symbol(file, on_function, &functions);

	if (!rc)
		rc = settle(&named);
	if (!rc)
		rc = subtract(&named, covered, ret);
	if (bytes_of(ret) < GAPS_BYTES_MIN)
		ret->n = 0;
	ret->named = ret->n;
	free(named.list);
	return rc;
}

/* Returns true if @range is a whole section, as .init and .fini, which have a few instructions. */
static bool is_section(const struct insn_ranges *code, const struct insn_range *range)
{
	for (size_t i = 0; i < code->n; i++)
		if (code->list[i].start == range->start && code->list[i].end == range->end)
			return true;
	return false;
}

/* Adds the gaps in files that have call frame information: hand-written assembly. */
static int find_gaps(struct quota_account *account, const struct insn_ranges *code,
		     const struct insn_ranges *covered, struct insn_ranges *ret)
{
	uint64_t bytes = 0;
	size_t n = 0;
	int rc = subtract(code, covered, ret);

	for (size_t i = 0; i < ret->n && !rc; i++) {
		const struct insn_range range = ret->list[i];
		uint64_t size = range.end - range.start;

		if (size < GAP_BYTES_MIN && !is_section(code, &range))
			continue;
		if (!fits_in(bytes, size, INSN_BYTES_MAX) || n == INSN_RANGES_MAX) {
			quota__refuse(account);
			continue;
		}
		ret->list[n++] = range;
		bytes += size;
	}
	ret->n = n;
	return rc;
}

static int on_covered(void *ctx, uint64_t start, uint64_t end)
{
	return add(ctx, start, end);
}

static size_t find_stubs(const struct elf_file *file, struct insn_range ret[PLT_SECTIONS])
{
	GElf_Shdr shdr;
	size_t n = 0;

	for (size_t i = 0; i < PLT_SECTIONS; i++)
		if (elf_file__section(file, plt__sections[i], &shdr))
			ret[n++] =
				(struct insn_range) { shdr.sh_addr, shdr.sh_addr + shdr.sh_size };
	return n;
}

/* Copies the described functions to @ret. Leaves out stubs: one description covers a whole section
 * of them, and each stub is a function. */
static int keep_described(const struct elf_file *file, const struct insn_ranges *covered,
			  struct insn_ranges *ret)
{
	struct insn_range stubs[PLT_SECTIONS];
	size_t n = find_stubs(file, stubs), k;

	if (!covered->n)
		return 0;
	ret->described = malloc(covered->n * sizeof(*covered->list));
	if (!ret->described)
		return -ENOMEM;
	for (size_t i = 0; i < covered->n; i++) {
		const struct insn_range *range = &covered->list[i];

		for (k = 0; k < n; k++)
			if (range->start >= stubs[k].start && range->start < stubs[k].end)
				break;
		if (k == n)
			ret->described[ret->n_described++] = *range;
	}
	return sort__array(ret->described, ret->n_described, sizeof(*ret->described), compare);
}

const struct insn_range *insn_ranges__described(const struct insn_ranges *ranges, uint64_t vaddr)
{
	size_t n = sorted__count_up_to(ranges->described, ranges->n_described,
				       sizeof(*ranges->described), vaddr);

	return n && vaddr < ranges->described[n - 1].end ? &ranges->described[n - 1] : NULL;
}

bool insn_ranges__may_enter(const struct insn_ranges *ranges, uint64_t vaddr)
{
	size_t n = sorted__count_up_to(ranges->described, ranges->n_described,
				       sizeof(*ranges->described), vaddr);

	return !n || ranges->described[n - 1].start == vaddr ||
	       vaddr >= ranges->described[n - 1].end;
}

int insn_ranges__find(const struct elf_file *file, struct insn_ranges *ret)
{
	struct insn_ranges code = {}, covered = {};
	bool whole;
	int rc = each_code(file, &code), settled;

	*ret = (struct insn_ranges) {};
	if (!rc)
		rc = quota__look();
	if (rc)
		goto out;
	whole = !has_frames(file, bytes_of(&code));
	rc = cfi_entries__functions(file, on_covered, &covered, NULL);
	if (rc == -EINTR || rc == -EFBIG || rc == -ENOMEM)
		goto out;
	settled = keep_described(file, &covered, ret) ?: settle(&covered);
	if (settled) {
		rc = settled;
		goto out;
	}
	if (whole && bytes_of(&code) <= NAMED_BYTES_MAX) {
		rc = subtract(&code, &covered, ret);
		ret->named = ret->n;
	} else if (whole) {
		rc = find_gaps(file->account, &code, &covered, ret);
	} else if (!rc && is_static(file)) {
		rc = find_named(file, &code, &covered, ret);
	}
	if (!rc && !ret->n && covered.n)
		rc = find_gaps(file->account, &code, &covered, ret);
	ret->later = !ret->named && bytes_of(ret) > INSN_BYTES_AT_ONCE;
out:
	free(code.list);
	free(covered.list);
	return rc == -ENOMEM || rc == -EINTR || rc == -EFBIG ? rc : 0;
}

bool insn_ranges__hold(const struct insn_ranges *ranges, uint64_t vaddr)
{
	for (size_t i = 0; i < ranges->n; i++)
		if (vaddr >= ranges->list[i].start && vaddr < ranges->list[i].end)
			return true;
	return false;
}

void insn_ranges__done(struct insn_ranges *ranges)
{
	free(ranges->list);
	free(ranges->described);
	*ranges = (struct insn_ranges) {};
}

static size_t count_beginnings(const char *code, size_t size)
{
	static const char begin[] = { 0x55, 0x48, (char)0x89, (char)0xe5 };
	const char *at = code;
	size_t n = 0;

	while ((at = memmem(at, code + size - at, begin, sizeof(begin)))) {
		at += sizeof(begin);
		n++;
	}
	return n;
}

int insn_range__has_frame_pointers(const struct elf_file *file, const struct insn_range *range)
{
	size_t size = range->end - range->start, n = 0, part;
	char *code;
	int rc = 0;

	if (size < COMPILED_BYTES_MIN)
		return 0;
	code = malloc(QUOTA_BLOCK);
	if (!code)
		return -ENOMEM;
	for (size_t at = 0; at < size && !rc; at += part) {
		part = min_of(size - at, (size_t)QUOTA_BLOCK);
		rc = elf_file__read(file, range->start + at, code, part) != 0;
		n += rc ? 0 : count_beginnings(code, part);
	}
	free(code);
	return rc ?: n * FRAME_POINTER_BYTES >= size;
}

static int mark_entry(void *ctx, uint64_t start, uint64_t end)
{
	struct insn_step *step = insn_steps__at(ctx, start);

	(void)end;
	if (step)
		step->entry = step->referred = true;
	return 0;
}

/* Returns true if a function may start at @step: assemblers fill up to its start, or the code
 * before it ends. */
static bool is_apart(const struct insn_steps *steps, const struct insn_step *step)
{
	return step == steps->list || step->vaddr % INSN_ALIGNMENT == 0 ||
	       step[-1].vaddr + step[-1].size != step->vaddr || step[-1].op == INSN_PADDING ||
	       !insn_step__goes_on(&step[-1]);
}

/* Returns true if a loaded address of @step is that of a function, which is called by a pointer:
 * @step is aligned, and padding or the end of other code precedes it. */
static bool is_taken(const struct insn_steps *steps, const struct insn_step *step)
{
	return step->vaddr % INSN_ALIGNMENT == 0 && step != steps->list &&
	       (step[-1].op == INSN_PADDING || !insn_step__goes_on(&step[-1]));
}

/* Marks the targets of all steps. @taken: a loaded address may be the only sign of a function's
 * start, as no frame description separates functions. */
static void mark_targets(struct insn_steps *steps, bool taken)
{
	for (size_t i = 0; i < steps->n; i++) {
		const struct insn_step *step = &steps->list[i];
		struct insn_step *target = step->target && !step->doubtful
						   ? insn_steps__at(steps, step->target)
						   : NULL;

		if (target)
			target->referred = true;
		if (target && step->op != INSN_TABLE)
			target->aimed = true;
		if (target && (step->op == INSN_CALL ||
			       (taken && step->op == INSN_TABLE && is_taken(steps, target))))
			target->entry = true;
		if (target && (step->op == INSN_JUMP || step->op == INSN_BRANCH))
			target->reached = true;
	}
}

/* Marks the starts. Bytes that resemble a call count only if their target may be the start of a
 * function. */
static int mark_starts(const struct elf_file *file, const struct insn_ranges *ranges,
		       const struct insn_starts *starts, struct insn_steps *steps)
{
	int rc = 0;

	for (size_t i = 0; i < starts->n && !rc; i++) {
		const struct code_start *start = &starts->list[i];
		struct insn_step *step = insn_steps__at(steps, start->vaddr);

		rc = quota__look_at(i);
		if (!step)
			continue;
		if (start->how & INSN_START_NAMED ||
		    (start->how & INSN_START_CALLED && is_apart(steps, step) &&
		     insn_starts__is_called(file, ranges, start)))
			step->entry = true;
		else
			step->reached = true;
	}
	return rc;
}

/* Returns true if @step begins as a function does, after padding. */
static bool is_resumed(const struct insn_steps *steps, const struct insn_step *step)
{
	return step != steps->list && step->vaddr % INSN_ALIGNMENT == 0 &&
	       step[-1].op == INSN_PADDING && step[-1].vaddr + step[-1].size == step->vaddr;
}

/* Marks doubtful steps. After bytes that are no instruction, the start of the next instruction is
 * unknown. The doubt ends at the start of a function, or at the target of an undoubted instruction.
 * Returns true if there are doubtful steps. */
static bool mark_doubtful(struct insn_steps *steps)
{
	bool doubt = false, ret = false;

	for (size_t i = 0; i < steps->n; i++) {
		struct insn_step *step = &steps->list[i];
		bool apart = i && step[-1].vaddr + step[-1].size != step->vaddr;

		doubt = step->unknown || (doubt && !apart && !step->entry && !step->aimed &&
					  !is_resumed(steps, step));
		step->doubtful = doubt;
		ret |= doubt;
	}
	return ret;
}

/* Changes doubtful steps to INSN_STOP, so that no rule is built from them or after them. */
static void stop_doubtful(struct insn_steps *steps)
{
	for (size_t i = 0; i < steps->n; i++) {
		struct insn_step *step = &steps->list[i];

		if (!step->doubtful)
			continue;
		*step = (struct insn_step) { .vaddr = step->vaddr,
					     .reg = UNWIND_REGS,
					     .op = INSN_STOP,
					     .size = step->size,
					     .writes = UINT16_MAX,
					     .unknown = true };
	}
}

static void mark_all_targets(struct insn_steps *steps, bool taken)
{
	bool doubts = mark_doubtful(steps);

	mark_targets(steps, taken);
	if (!doubts)
		return;
	if (mark_doubtful(steps))
		stop_doubtful(steps);
	mark_targets(steps, taken);
}

int insn_ranges__read(const struct elf_file *file, const struct insn_ranges *ranges,
		      const struct insn_starts *starts, struct insn_steps *ret)
{
	int rc = 0;

	for (size_t i = 0; i < ranges->n && rc >= 0; i++) {
		const struct insn_range *range = &ranges->list[i];

		rc = ranges->named || ranges->later ? 0
						    : insn_range__has_frame_pointers(file, range);
		if (!rc)
			rc = insn_steps__read(ret, file, range->start, range->end);
	}
	rc = min_of(rc, 0);
	if (!rc && ret->n && ranges->named)
		insn_ranges__each_symbol(file, mark_entry, ret);
	if (!rc && ret->n && starts)
		rc = mark_starts(file, ranges, starts, ret);
	if (!rc)
		mark_all_targets(ret, ranges->named);
	return rc == -ENOMEM || rc == -EINTR || rc == -EFBIG ? rc : 0;
}
