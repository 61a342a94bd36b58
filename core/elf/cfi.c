// SPDX-License-Identifier: GPL-2.0-or-later
/* Builds the rows of a whole file. Frame descriptions may overlap (hand-written assembly, a
 * linker's leftovers), be in any order, and leave gaps. The search in the kernel half needs rows
 * that ascend and never contradict one another. So the descriptions are processed by their start,
 * and each one describes only code that no earlier one covers: @covered is the end of that code.
 * The gap before a description is code without a rule. An exception is a short gap of padding,
 * which is never executed: the rule before the gap extends over it, which saves a row for each
 * function. But each description begins a row, whatever its first rule is. There a walker can
 * distinguish a return address from the address of a function that no frame called. */
#include "core/elf/cfi.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/elf/cfi_entries.h"
#include "core/elf/cfi_program.h"
#include "core/elf/insn_padding.h"

/* state of one read */
struct cfi {
	const struct arch *arch;
	struct cfi_entries entries;
	struct cfi_program *programs; /* one per common entry */
	struct insn_padding padding;
	cfi_row_fn row;
	void *ctx;
	uint64_t covered;	 /* end of the emitted rows; link-time address */
	struct unwind_rule last; /* rule of the last emitted row */
	bool begins;		 /* the next row is the first one of a description */
};

static int put_row(struct cfi *cfi, uint64_t vaddr, const struct unwind_rule *rule)
{
	if (!cfi->begins && memcmp(rule, &cfi->last, sizeof(*rule)) == 0)
		return 0;
	cfi->begins = false;
	cfi->last = *rule;
	return cfi->row(cfi->ctx, vaddr, rule);
}

static int put_gap(struct cfi *cfi)
{
	static const struct unwind_rule none = { .kind = UNWIND_NONE };

	return put_row(cfi, cfi->covered, &none);
}

static int put_range(void *ctx, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
	struct cfi *cfi = ctx;
	bool begins = cfi->begins;
	int rc = 0;

	start = max_of(start, cfi->covered);
	if (start >= end)
		return 0;
	cfi->begins = false;
	if (start - cfi->covered >= INSN_GAP_BYTES)
		rc = put_gap(cfi);
	assert(end > cfi->covered);
	cfi->covered = end;
	cfi->begins = begins;
	return rc ? rc : put_row(cfi, start, rule);
}

static int put_rows(struct cfi *cfi)
{
	int rc = 0;

	for (size_t i = 0; i < cfi->entries.n_fdes && !rc; i++) {
		const struct cfi_fde *fde = &cfi->entries.fdes[i];

		rc = quota__look_at(i);
		if (!rc && insn_padding__has_code(&cfi->padding, fde))
			rc = put_gap(cfi);
		cfi->begins = fde->start >= cfi->covered;
		if (!rc && fde->end > cfi->covered)
			rc = cfi_program__run(&cfi->programs[fde->cie], fde->code, fde->code_size,
					      fde->start, fde->end, put_range, cfi);
	}
	cfi->begins = false;
	return rc ? rc : put_gap(cfi);
}

static int prepare_programs(struct cfi *cfi)
{
	const struct cfi_entries *entries = &cfi->entries;

	cfi->programs = calloc(entries->n_cies + 1, sizeof(*cfi->programs));
	for (size_t i = 0; cfi->programs && i < entries->n_cies; i++)
		cfi_program__prepare(&cfi->programs[i], &entries->cies[i], cfi->arch);
	return cfi->programs ? 0 : -ENOMEM;
}

int cfi__read(const struct elf_file *file, cfi_row_fn row, void *ctx, struct err *err)
{
	struct cfi cfi = { .arch = file->arch, .row = row, .ctx = ctx, .padding.file = file };
	int rc = cfi_entries__read(file, &cfi.entries, err);

	if (!rc && prepare_programs(&cfi))
		rc = err__set(err, -ENOMEM, "%s: out of memory", file->path);
	if (!rc)
		rc = put_rows(&cfi);
	free(cfi.programs);
	cfi_entries__done(&cfi.entries);
	return rc;
}
