// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/cfi_entries.h"

#include <elfutils/libdw.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/sort.h"
#include "core/base/util.h"
#include "core/elf/cfi_reader.h"

/* Limits of 40 and 80 bytes each. Seen: 1,100,000 and 30,000 in a browser. */
#define FDES_MAX (6U << 20)
#define CIES_MAX (1U << 20)

/* The charge includes the memory for sorting. */
#define CHARGED_AT_ONCE 4096
#define CHARGED_BYTES	(CHARGED_AT_ONCE * 2 * sizeof(struct cfi_fde))

struct section {
	Elf_Data *data;
	uint64_t bias; /* as in struct cfi_cie */
	bool debug_frame;
	size_t first_cie; /* index */
};

/* Reads the augmentation data of @entry, whose content the augmentation string lists in order.
 * Returns false if the data are malformed or of an unknown kind. */
static bool read_augmentation(struct cfi_cie *cie, const Dwarf_CIE *entry)
{
	struct cfi_reader in = { .at = entry->augmentation_data };
	const char *c = entry->augmentation;

	cie->encoding = DW_EH_PE_absptr;
	cie->lsda_encoding = DW_EH_PE_omit;
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
			cie->lsda_encoding = cfi_reader__uint(&in, 1);
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

static int add_cie(struct cfi_entries *entries, const struct section *section, uint64_t offset,
		   const Dwarf_CIE *entry)
{
	struct cfi_cie *cie;

	if (entries->n_cies >= CIES_MAX)
		return quota__refuse(entries->file->account);
	if (array__reserve(&entries->cies, &entries->cap_cies, entries->n_cies + 1,
			   sizeof(*entries->cies)))
		return -ENOMEM;
	cie = &entries->cies[entries->n_cies++];
	*cie = (struct cfi_cie) {
		.offset = offset,
		.bias = section->bias,
		.code_align = entry->code_alignment_factor,
		.data_align = entry->data_alignment_factor,
		.ra_reg = min_of(entry->return_address_register, (Dwarf_Word)UINT8_MAX),
		.code = entry->initial_instructions,
		.code_size = entry->initial_instructions_end - entry->initial_instructions,
	};
	if (!read_augmentation(cie, entry))
		cie->encoding = DW_EH_PE_omit;
	return 0;
}

static int compare_offset(const void *key, const void *cie)
{
	uint64_t a = *(const uint64_t *)key, b = ((const struct cfi_cie *)cie)->offset;

	return a < b ? -1 : a > b;
}

/* Returns the common entry at @offset. NULL: the entry does not precede its users, although all
 * producers write it there. */
static const struct cfi_cie *find_cie(const struct cfi_entries *entries,
				      const struct section *section, uint64_t offset)
{
	size_t n = entries->n_cies - section->first_cie;

	if (!n)
		return NULL;
	if (entries->cies[entries->n_cies - 1].offset == offset)
		return &entries->cies[entries->n_cies - 1];
	return bsearch(&offset, entries->cies + section->first_cie, n, sizeof(*entries->cies),
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

/* Skips the augmentation data of a description. Returns the address of its language-specific data;
 * 0: none; UINT64_MAX: malformed. */
static uint64_t take_lsda(struct cfi_reader *in, const struct cfi_cie *cie)
{
	uint64_t size = cfi_reader__uleb(in), before = (uintptr_t)in->at, lsda;
	struct cfi_reader data = { .at = in->at };

	cfi_reader__skip(in, size);
	data.end = in->at;
	if (in->bad || cie->lsda_encoding == DW_EH_PE_omit)
		return 0;
	lsda = cfi_reader__address(&data, cie->lsda_encoding, cie->bias);
	/* a null pointer is no address, whatever its base */
	return data.bad ? UINT64_MAX : lsda == before + cie->bias ? 0 : lsda;
}

/* Adds a frame description. Skips an unusable one, which is no error. */
static int add_fde(struct cfi_entries *entries, const struct section *section,
		   const Dwarf_FDE *entry)
{
	const struct cfi_cie *cie = find_cie(entries, section, entry->CIE_pointer);
	struct cfi_reader in = { .at = entry->start, .end = entry->end };
	struct cfi_fde fde = { .debug_frame = section->debug_frame };

	if (!cie)
		return 0;
	fde.start = cfi_reader__address(&in, cie->encoding, cie->bias);
	fde.end = fde.start + cfi_reader__encoded(&in, cie->encoding);
	if (cie->sized)
		fde.lsda = take_lsda(&in, cie);
	if (in.bad || in.end - in.at > UINT32_MAX || !is_code(entries->file, fde.start, fde.end))
		return 0;
	fde.cie = cie - entries->cies;
	fde.code = in.at;
	fde.code_size = in.end - in.at;
	if (entries->n_fdes >= FDES_MAX)
		return quota__refuse(entries->file->account);
	if (entries->n_fdes % CHARGED_AT_ONCE == 0) {
		int rc = quota__charge(entries->file->account, QUOTA_RETAINED, CHARGED_BYTES);

		if (rc)
			return rc;
		entries->charged += CHARGED_BYTES;
	}
	if (array__reserve(&entries->fdes, &entries->cap_fdes, entries->n_fdes + 1,
			   sizeof(*entries->fdes)))
		return -ENOMEM;
	entries->fdes[entries->n_fdes++] = fde;
	return 0;
}

static int read_entries(struct cfi_entries *entries, struct section *section, struct err *err)
{
	const unsigned char *ident = (const unsigned char *)elf_getident(entries->file->elf, NULL);
	Dwarf_Off offset = 0, next = 0;
	Dwarf_CFI_Entry entry;
	int found, rc = 0;

	for (uint64_t i = 0; !rc; i++) {
		rc = quota__look_at(i);
		if (rc)
			break;
		found = dwarf_next_cfi(ident, section->data, !section->debug_frame, offset, &next,
				       &entry);
		if (found < 0 && !offset)
			return err__set(err, -EBADMSG, "%s: malformed %s: %s", entries->file->path,
					section->debug_frame ? ".debug_frame" : ".eh_frame",
					dwarf_errmsg(-1));
		if (found || next <= offset)
			return 0;
		rc = dwarf_cfi_cie_p(&entry) ? add_cie(entries, section, offset, &entry.cie)
					     : add_fde(entries, section, &entry.fde);
		offset = next;
	}
	return err__set(err, rc, "%s: %s", entries->file->path, strerror(-rc));
}

static int read_section(struct cfi_entries *entries, const char *name, bool debug_frame,
			struct err *err)
{
	struct section section = { .debug_frame = debug_frame, .first_cie = entries->n_cies };
	GElf_Shdr shdr;

	section.data = elf_file__section(entries->file, name, &shdr);
	if (!section.data)
		return 0;
	section.bias = shdr.sh_addr - (uintptr_t)section.data->d_buf;
	return read_entries(entries, &section, err);
}

/* --- order --- */

static int compare_fdes(const void *pa, const void *pb)
{
	const struct cfi_fde *a = pa, *b = pb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->debug_frame != b->debug_frame)
		return a->debug_frame - b->debug_frame;
	return a->code < b->code ? -1 : a->code > b->code;
}

static int sort_fdes(struct cfi_entries *entries)
{
	size_t i = 1;

	while (i < entries->n_fdes && compare_fdes(&entries->fdes[i - 1], &entries->fdes[i]) <= 0)
		i++;
	if (i < entries->n_fdes) /* most linkers sort them */
		return sort__array(entries->fdes, entries->n_fdes, sizeof(*entries->fdes),
				   compare_fdes);
	return 0;
}

/* Empties the descriptions of .debug_frame for functions that .eh_frame covers at least in part. */
static void drop_second_choices(struct cfi_entries *entries)
{
	uint64_t next_start = UINT64_MAX, last_end = 0;

	for (size_t i = entries->n_fdes; i-- > 0;) {
		struct cfi_fde *fde = &entries->fdes[i];

		if (!fde->debug_frame)
			next_start = fde->start;
		else if (fde->end > next_start)
			fde->end = fde->start;
	}
	for (size_t i = 0; i < entries->n_fdes; i++) {
		struct cfi_fde *fde = &entries->fdes[i];

		if (!fde->debug_frame)
			last_end = max_of(last_end, fde->end);
		else if (fde->start < last_end)
			fde->end = fde->start;
	}
}

int cfi_entries__read(const struct elf_file *file, struct cfi_entries *entries, struct err *err)
{
	int rc;

	*entries = (struct cfi_entries) { .file = file };
	rc = read_section(entries, ".eh_frame", false, err);

	if (!rc)
		rc = read_section(entries, ".debug_frame", true, err);
	if (rc)
		return rc;
	rc = sort_fdes(entries);
	if (rc)
		return err__set(err, rc, "%s: %s", file->path, strerror(-rc));
	drop_second_choices(entries);
	return 0;
}

void cfi_entries__done(struct cfi_entries *entries)
{
	if (entries->file)
		quota__give_back(entries->file->account, entries->charged);
	free(entries->cies);
	free(entries->fdes);
	*entries = (struct cfi_entries) {};
}

int cfi_entries__functions(const struct elf_file *file, cfi_function_fn function, void *ctx,
			   struct err *err)
{
	struct cfi_entries entries;
	int rc = cfi_entries__read(file, &entries, err);

	for (size_t i = 0; i < entries.n_fdes && !rc; i++)
		if (entries.fdes[i].end > entries.fdes[i].start)
			rc = function(ctx, entries.fdes[i].start, entries.fdes[i].end);
	cfi_entries__done(&entries);
	return rc;
}
