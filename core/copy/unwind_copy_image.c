// SPDX-License-Identifier: GPL-2.0-or-later
/* libunwind can search .eh_frame_hdr by itself, but not every image has that section. It reads
 * .debug_frame only from its own memory, unchecked. It trusts its input: a return-address column
 * out of range is an index, a missing CFA rule an assertion. So this file finds the entries and
 * passes them on rewritten: absolute addresses, no personality, column checked, CFA always defined.
 * The instructions are passed on unchanged, because their independent reading is the purpose of a
 * second unwinder. */
#include "core/copy/unwind_copy_image.h"

#include <elfutils/libdw.h>
#include <errno.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/sort.h"
#include "core/base/util.h"
#include "core/elf/cfi_reader.h"

#define N_SECTIONS     2
#define RETURN_ADDRESS 16	  /* DWARF's number for x86-64 */
#define TEXT_BYTES_MAX (1U << 30) /* so that positions fit 32 bits */
#define WORD_BYTES     8 /* bytes; libunwind reads whole words, so spare bytes follow each record */

struct unwind_fde {
	uint64_t start, end; /* link-time addresses */
	uint32_t offset;     /* in the section */
	uint32_t text_at;    /* position of the record + 1; 0: not yet written */
};

struct unwind_section {
	Elf_Data *data; /* borrowed; NULL: absent */
	uint64_t vaddr;
	bool eh_frame;
	struct unwind_fde *fdes; /* owned, by start */
	size_t n_fdes, cap_fdes;
};

struct cie {
	Dwarf_CIE raw;
	uint8_t encoding; /* DW_EH_PE_* of the addresses in its users */
	bool sized;	  /* its users have a size before their augmentation data */
	bool signal;
};

/* --- reading --- */

static int next_entry(const struct unwind_image *image, const struct unwind_section *section,
		      uint64_t offset, Dwarf_Off *ret_next, Dwarf_CFI_Entry *ret)
{
	const unsigned char *ident = (const unsigned char *)elf_getident(image->file->elf, NULL);

	return dwarf_next_cfi(ident, section->data, section->eh_frame, offset, ret_next, ret);
}

/* Reads the CIE at @offset. Returns false if it is malformed or libunwind cannot represent it. */
static bool read_cie(const struct unwind_image *image, const struct unwind_section *section,
		     uint64_t offset, struct cie *ret)
{
	struct cie cie = { .encoding = DW_EH_PE_absptr };
	struct cfi_reader in = { 0 };
	Dwarf_CFI_Entry entry;
	Dwarf_Off next;

	if (next_entry(image, section, offset, &next, &entry) || !dwarf_cfi_cie_p(&entry))
		return false;
	cie.raw = entry.cie;
	if (cie.raw.return_address_register != RETURN_ADDRESS)
		return false;
	in.at = cie.raw.augmentation_data;
	in.end = in.at ? in.at + cie.raw.augmentation_data_size : in.at;
	for (const char *c = cie.raw.augmentation; *c; c++) {
		if (c == cie.raw.augmentation && *c == 'z')
			cie.sized = true;
		else if (cie.sized && *c == 'R')
			cie.encoding = cfi_reader__uint(&in, 1);
		else if (cie.sized && *c == 'L')
			cfi_reader__skip(&in, 1);
		else if (cie.sized && *c == 'P')
			cfi_reader__encoded(&in, cfi_reader__uint(&in, 1));
		else if (cie.sized && *c == 'S')
			cie.signal = true;
		else
			return false;
	}
	*ret = cie;
	return !in.bad;
}

/* Reads the addresses of an FDE. *@ret_code then points to its instructions. Returns false if the
 * FDE is malformed. */
static bool read_fde(const struct unwind_section *section, const struct cie *cie,
		     const Dwarf_FDE *entry, uint64_t *ret_start, uint64_t *ret_end,
		     struct cfi_reader *ret_code)
{
	struct cfi_reader in = { .at = entry->start, .end = entry->end };
	uint64_t start, size;

	start = cfi_reader__address(&in, cie->encoding,
				    section->vaddr - (uintptr_t)section->data->d_buf);
	size = cfi_reader__encoded(&in, cie->encoding);
	if (cie->sized)
		cfi_reader__skip(&in, cfi_reader__uleb(&in));
	if (in.bad || !size || start + size < start)
		return false;
	*ret_start = start;
	*ret_end = start + size;
	*ret_code = in;
	return true;
}

/* --- index --- */

static int compare_fdes(const void *pa, const void *pb)
{
	const struct unwind_fde *a = pa, *b = pb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static int add_fde(struct unwind_section *section, const struct cie *cie, uint64_t offset,
		   const Dwarf_FDE *entry)
{
	struct unwind_fde fde = { .offset = offset };
	struct cfi_reader code;

	if (!read_fde(section, cie, entry, &fde.start, &fde.end, &code))
		return 0;
	if (array__reserve(&section->fdes, &section->cap_fdes, section->n_fdes + 1,
			   sizeof(*section->fdes)))
		return -ENOMEM;
	section->fdes[section->n_fdes++] = fde;
	return 0;
}

static int read_section(const struct unwind_image *image, struct unwind_section *section)
{
	Dwarf_Off offset = 0, next = 0;
	uint64_t cie_offset = UINT64_MAX; /* @cie's; most entries share it with their neighbour */
	bool cie_known = false;
	uint64_t n = 0;
	Dwarf_CFI_Entry entry;
	struct cie cie;
	int rc = 0;

	/* Ends at the first malformed entry, because the entries after it cannot be located. */
	for (; !rc && !quota__look_at(n++) && !next_entry(image, section, offset, &next, &entry);
	     offset = next) {
		if (dwarf_cfi_cie_p(&entry))
			continue;
		if (offset > UINT32_MAX)
			break;
		if (entry.fde.CIE_pointer != cie_offset) {
			cie_offset = entry.fde.CIE_pointer;
			cie_known = read_cie(image, section, cie_offset, &cie);
		}
		if (cie_known)
			rc = add_fde(section, &cie, offset, &entry.fde);
	}
	return rc
		       ?: sort__array(section->fdes, section->n_fdes, sizeof(*section->fdes),
				      compare_fdes);
}

static int open_section(struct unwind_image *image, struct unwind_section *section,
			const char *name, bool eh_frame)
{
	GElf_Shdr shdr;

	section->data = elf_file__section(image->file, name, &shdr);
	if (!section->data)
		return 0;
	section->vaddr = shdr.sh_addr;
	section->eh_frame = eh_frame;
	return read_section(image, section);
}

int unwind_image__init(struct unwind_image *image, const struct elf_file *file, uint64_t bias)
{
	uint64_t start = UINT64_MAX, end = 0;
	int rc = -ENOMEM;

	for (size_t i = 0; i < file->n_segments; i++) {
		start = min_of(start, file->segments[i].vaddr);
		end = max_of(end, file->segments[i].vaddr + file->segments[i].memsz);
	}
	*image = (struct unwind_image) { .file = file, .bias = bias, .mapped = true };
	image->start = start + bias;
	image->end = end + bias;
	image->sections = calloc(N_SECTIONS, sizeof(*image->sections));
	if (!image->sections)
		goto out;
	rc = open_section(image, &image->sections[0], ".eh_frame", true);
	if (rc)
		goto out;
	rc = open_section(image, &image->sections[1], ".debug_frame", false);
out:
	if (rc)
		unwind_image__done(image);
	return rc;
}

void unwind_image__done(struct unwind_image *image)
{
	for (size_t i = 0; image->sections && i < N_SECTIONS; i++)
		free(image->sections[i].fdes);
	free(image->sections);
	image->sections = NULL;
}

static struct unwind_fde *find_fde(const struct unwind_section *section, uint64_t vaddr)
{
	size_t low = 0, high = section->n_fdes;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (vaddr < section->fdes[middle].start)
			high = middle;
		else
			low = middle + 1;
	}
	return low && vaddr < section->fdes[low - 1].end ? &section->fdes[low - 1] : NULL;
}

/* --- writing; put_record() reserves the space first --- */

static void put(struct unwind_text *text, const void *bytes, size_t n)
{
	if (n)
		memcpy(text->bytes + text->n, bytes, n);
	text->n += n;
}

static void put_u32(struct unwind_text *text, uint32_t value)
{
	put(text, &value, sizeof(value));
}

static void put_u64(struct unwind_text *text, uint64_t value)
{
	put(text, &value, sizeof(value));
}

static void put_leb(struct unwind_text *text, int64_t value)
{
	bool more = true;

	while (more) {
		uint8_t byte = value & 0x7f;

		value >>= 7; /* gcc and clang shift in the sign of a negative number */
		more = value != (byte & 0x40 ? -1 : 0);
		put(text, &(uint8_t) { byte | (more ? 0x80 : 0) }, 1);
	}
}

/* Writes the length of the entry at @entry_at, without the length field itself. */
static void close_entry(struct unwind_text *text, size_t entry_at)
{
	uint32_t size = text->n - entry_at - sizeof(size);

	memcpy(text->bytes + entry_at, &size, sizeof(size));
}

static void put_cie(struct unwind_text *text, const struct cie *cie)
{
	static const uint8_t cfa_at_entry[] = { DW_CFA_def_cfa, 7 /* rsp */, 8 };
	const uint8_t *code = cie->raw.initial_instructions;
	size_t at = text->n;

	put_u32(text, 0);   /* length */
	put_u32(text, 0);   /* "a CIE" */
	put(text, "\1", 1); /* version */
	put(text, cie->signal ? "zS" : "z", cie->signal ? 3 : 2);
	put_leb(text, cie->raw.code_alignment_factor);
	put_leb(text, cie->raw.data_alignment_factor);
	put(text, &(uint8_t) { RETURN_ADDRESS }, 1);
	put_leb(text, 0); /* size of the augmentation data */
	put(text, cfa_at_entry, sizeof(cfa_at_entry));
	put(text, code, cie->raw.initial_instructions_end - code);
	close_entry(text, at);
}

static void put_fde(struct unwind_text *text, size_t cie_at, uint64_t start, uint64_t end,
		    const struct cfi_reader *code)
{
	size_t at = text->n;

	put_u32(text, 0); /* length */
	put_u32(text, text->n - cie_at);
	put_u64(text, start);
	put_u64(text, end - start);
	put_leb(text, 0); /* size of the augmentation data */
	put(text, code->at, code->end - code->at);
	close_entry(text, at);
}

static int put_record(struct unwind_image *image, const struct unwind_section *section,
		      struct unwind_fde *fde, struct unwind_text *text)
{
	static const uint8_t spare[2 * WORD_BYTES];
	size_t size = 128, at = text->n; /* everything except the instructions takes less */
	uint64_t start, end;
	struct cfi_reader code;
	Dwarf_CFI_Entry entry;
	uint32_t fde_at;
	struct cie cie;
	Dwarf_Off next;

	if (next_entry(image, section, fde->offset, &next, &entry) || dwarf_cfi_cie_p(&entry) ||
	    !read_cie(image, section, entry.fde.CIE_pointer, &cie) ||
	    !read_fde(section, &cie, &entry.fde, &start, &end, &code))
		return -ENOENT;
	size += cie.raw.initial_instructions_end - cie.raw.initial_instructions;
	size += code.end - code.at;
	if (size > TEXT_BYTES_MAX - at)
		return -ENOENT;
	if (array__reserve(&text->bytes, &text->cap, at + size, 1))
		return -ENOMEM;
	put_u32(text, INT32_MIN); /* the one entry covers every address */
	put_u32(text, 0);
	put_cie(text, &cie);
	fde_at = text->n - at;
	memcpy(text->bytes + at + sizeof(uint32_t), &fde_at, sizeof(fde_at));
	put_fde(text, at + 2 * sizeof(uint32_t), start + image->bias, end + image->bias, &code);
	put(text, spare, sizeof(spare));
	fde->text_at = at + 1;
	return 0;
}

int unwind_image__describe(struct unwind_image *image, uint64_t ip, struct unwind_text *text,
			   size_t *ret_at)
{
	for (size_t i = 0; i < N_SECTIONS && ip >= image->start && ip < image->end; i++) {
		struct unwind_section *section = &image->sections[i];
		struct unwind_fde *fde = find_fde(section, ip - image->bias);
		int rc;

		if (!fde)
			continue;
		rc = fde->text_at ? 0 : put_record(image, section, fde, text);
		if (!rc)
			*ret_at = fde->text_at - 1;
		return rc;
	}
	return -ENOENT;
}
