// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cfi.h"

#include <elfutils/libdw.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/cfi_program.h"
#include "core/cfi_reader.h"
#include "core/util.h"

#define PADDING_BYTES 16 /* functions start at multiples of this: a gap below it holds no code */

struct fde {
	uint64_t start, end;
	const uint8_t *code; /* in the section's data */
	uint32_t code_size;
	uint32_t cie;	  /* index */
	bool debug_frame; /* second choice */
};

/* The read in progress. */
struct cfi {
	const struct elf_file *file;
	struct cfi_cie *cies; /* by section, in it by offset */
	size_t n_cies, cap_cies;
	struct fde *fdes;
	size_t n_fdes, cap_fdes;
	cfi_row_fn row;
	void *ctx;
	uint64_t covered;	 /* all rows up to here were put */
	struct unwind_rule last; /* rule of the last row */
};

struct section {
	Elf_Data *data;
	uint64_t bias; /* see struct cfi_cie */
	bool debug_frame;
	size_t first_cie; /* index */
};

/* --- entries --- */

/* The augmentation string names what the augmentation data hold, in order. */
static bool read_augmentation(struct cfi_cie *cie, const Dwarf_CIE *entry)
{
	struct cfi_reader in = { .at = entry->augmentation_data };
	const char *c = entry->augmentation;

	cie->encoding = DW_EH_PE_absptr;
	if (!*c)
		return true;
	if (*c != 'z')
		return false;
	cie->sized = true;
	in.end = in.at ? in.at + entry->augmentation_data_size : in.at;
	while (*++c) {
		switch (*c) {
		case 'R':
			cie->encoding = cfi_reader__uint(&in, 1);
			break;
		case 'L':
			cfi_reader__skip(&in, 1);
			break;
		case 'P':
			cfi_reader__encoded(&in, cfi_reader__uint(&in, 1));
			break;
		case 'S':
			cie->signal = true;
			break;
		default:
			return false;
		}
	}
	return !in.bad;
}

static int add_cie(struct cfi *cfi, const struct section *section, uint64_t offset,
		   const Dwarf_CIE *entry)
{
	struct cfi_cie *cie;

	if (array__reserve(&cfi->cies, &cfi->cap_cies, cfi->n_cies + 1, sizeof(*cfi->cies)))
		return -ENOMEM;
	cie = &cfi->cies[cfi->n_cies++];
	*cie = (struct cfi_cie) {
		.offset = offset,
		.bias = section->bias,
		.code_align = entry->code_alignment_factor,
		.data_align = entry->data_alignment_factor,
	};
	if (!read_augmentation(cie, entry))
		cie->encoding = DW_EH_PE_omit;
	if (entry->return_address_register == CFI_REG_RA)
		cfi_program__prepare(cie, entry->initial_instructions,
				     entry->initial_instructions_end - entry->initial_instructions);
	return 0;
}

static int compare_offset(const void *key, const void *cie)
{
	uint64_t a = *(const uint64_t *)key, b = ((const struct cfi_cie *)cie)->offset;

	return a < b ? -1 : a > b;
}

/* NULL for an entry that does not come before its users, as it does everywhere. */
static const struct cfi_cie *find_cie(const struct cfi *cfi, const struct section *section,
				      uint64_t offset)
{
	size_t n = cfi->n_cies - section->first_cie;

	if (!n)
		return NULL;
	if (cfi->cies[cfi->n_cies - 1].offset == offset)
		return &cfi->cies[cfi->n_cies - 1];
	return bsearch(&offset, cfi->cies + section->first_cie, n, sizeof(*cfi->cies),
		       compare_offset);
}

static bool is_code(const struct elf_file *file, uint64_t start, uint64_t end)
{
	if (!start || end <= start)
		return false;
	for (size_t i = 0; i < file->n_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];

		if (segment->exec && start >= segment->vaddr &&
		    end - segment->vaddr <= segment->memsz)
			return true;
	}
	return false;
}

/* One that cannot be used is left out, which is no error. */
static int add_fde(struct cfi *cfi, const struct section *section, const Dwarf_FDE *entry)
{
	const struct cfi_cie *cie = find_cie(cfi, section, entry->CIE_pointer);
	struct cfi_reader in = { .at = entry->start, .end = entry->end };
	struct fde fde = { .debug_frame = section->debug_frame };

	if (!cie)
		return 0;
	fde.start = cfi_reader__address(&in, cie->encoding, cie->bias);
	fde.end = fde.start + cfi_reader__encoded(&in, cie->encoding);
	if (cie->sized)
		cfi_reader__skip(&in, cfi_reader__uleb(&in));
	if (in.bad || in.end - in.at > UINT32_MAX || !is_code(cfi->file, fde.start, fde.end))
		return 0;
	fde.cie = cie - cfi->cies;
	fde.code = in.at;
	fde.code_size = in.end - in.at;
	if (array__reserve(&cfi->fdes, &cfi->cap_fdes, cfi->n_fdes + 1, sizeof(*cfi->fdes)))
		return -ENOMEM;
	cfi->fdes[cfi->n_fdes++] = fde;
	return 0;
}

static int read_entries(struct cfi *cfi, struct section *section, struct err *err)
{
	const unsigned char *ident = (const unsigned char *)elf_getident(cfi->file->elf, NULL);
	Dwarf_Off offset = 0, next = 0;
	Dwarf_CFI_Entry entry;
	int found, rc = 0;

	while (!rc) {
		found = dwarf_next_cfi(ident, section->data, !section->debug_frame, offset, &next,
				       &entry);
		if (found < 0 && !offset)
			return err__set(err, -EBADMSG, "%s: malformed %s: %s", cfi->file->path,
					section->debug_frame ? ".debug_frame" : ".eh_frame",
					dwarf_errmsg(-1));
		if (found || next <= offset)
			return 0;
		rc = dwarf_cfi_cie_p(&entry) ? add_cie(cfi, section, offset, &entry.cie)
					     : add_fde(cfi, section, &entry.fde);
		offset = next;
	}
	return err__set(err, rc, "%s: out of memory", cfi->file->path);
}

static int read_section(struct cfi *cfi, const char *name, bool debug_frame, struct err *err)
{
	struct section section = { .debug_frame = debug_frame, .first_cie = cfi->n_cies };
	GElf_Shdr shdr;

	section.data = elf_file__section(cfi->file, name, &shdr);
	if (!section.data)
		return 0;
	section.bias = shdr.sh_addr - (uintptr_t)section.data->d_buf;
	return read_entries(cfi, &section, err);
}

/* --- order --- */

static int compare_fdes(const void *pa, const void *pb)
{
	const struct fde *a = pa, *b = pb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->debug_frame != b->debug_frame)
		return a->debug_frame - b->debug_frame;
	return a->code < b->code ? -1 : a->code > b->code;
}

static void sort_fdes(struct cfi *cfi)
{
	size_t i = 1;

	while (i < cfi->n_fdes && compare_fdes(&cfi->fdes[i - 1], &cfi->fdes[i]) <= 0)
		i++;
	if (i < cfi->n_fdes) /* most linkers sort them */
		qsort(cfi->fdes, cfi->n_fdes, sizeof(*cfi->fdes), compare_fdes);
}

/* Empties what .debug_frame has on functions that .eh_frame has something on. */
static void drop_second_choices(struct cfi *cfi)
{
	uint64_t next_start = UINT64_MAX, last_end = 0;

	for (size_t i = cfi->n_fdes; i-- > 0;) {
		struct fde *fde = &cfi->fdes[i];

		if (!fde->debug_frame)
			next_start = fde->start;
		else if (fde->end > next_start)
			fde->end = fde->start;
	}
	for (size_t i = 0; i < cfi->n_fdes; i++) {
		struct fde *fde = &cfi->fdes[i];

		if (!fde->debug_frame)
			last_end = max_of(last_end, fde->end);
		else if (fde->start < last_end)
			fde->end = fde->start;
	}
}

/* --- rows --- */

static int put_row(struct cfi *cfi, uint64_t vaddr, const struct unwind_rule *rule)
{
	if (memcmp(rule, &cfi->last, sizeof(*rule)) == 0)
		return 0;
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
	int rc = 0;

	start = max_of(start, cfi->covered);
	if (start >= end)
		return 0;
	if (start - cfi->covered >= PADDING_BYTES)
		rc = put_gap(cfi);
	cfi->covered = end;
	return rc ? rc : put_row(cfi, start, rule);
}

static int put_rows(struct cfi *cfi)
{
	int rc = 0;

	for (size_t i = 0; i < cfi->n_fdes && !rc; i++) {
		const struct fde *fde = &cfi->fdes[i];

		if (fde->end > cfi->covered)
			rc = cfi_program__run(&cfi->cies[fde->cie], fde->code, fde->code_size,
					      fde->start, fde->end, put_range, cfi);
	}
	return rc ? rc : put_gap(cfi);
}

static int read_file(struct cfi *cfi, struct err *err)
{
	int rc = read_section(cfi, ".eh_frame", false, err);

	if (!rc)
		rc = read_section(cfi, ".debug_frame", true, err);
	if (rc)
		return rc;
	sort_fdes(cfi);
	drop_second_choices(cfi);
	return 0;
}

int cfi__read(const struct elf_file *file, cfi_row_fn row, void *ctx, struct err *err)
{
	struct cfi cfi = { .file = file, .row = row, .ctx = ctx };
	int rc = read_file(&cfi, err);

	if (!rc)
		rc = put_rows(&cfi);
	free(cfi.cies);
	free(cfi.fdes);
	return rc;
}

int cfi__functions(const struct elf_file *file, cfi_function_fn function, void *ctx,
		   struct err *err)
{
	struct cfi cfi = { .file = file };
	int rc = read_file(&cfi, err);

	for (size_t i = 0; i < cfi.n_fdes && !rc; i++)
		if (cfi.fdes[i].end > cfi.fdes[i].start)
			rc = function(ctx, cfi.fdes[i].start, cfi.fdes[i].end);
	free(cfi.cies);
	free(cfi.fdes);
	return rc;
}
