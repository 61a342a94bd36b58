// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/dwarf_image.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/elf/cfi_reader.h"
#include "core/elf/debug_missing.h"
#include "core/elf/elf_section.h"

#define ALIGN 16

/* Limit of the abbreviations of one unit, in bytes. A large program that was linked as one unit has
 * about 20 KB. */
#define ABBREV_BYTES_MAX (1 << 20)

static const char *const names[] = {
	".debug_info", ".debug_abbrev", ".debug_line",	     ".debug_line_str",
	".debug_str",  ".debug_ranges", ".debug_rnglists",   ".debug_str_offsets",
	".debug_addr", ".debug_macro",	".gnu_debugaltlink",
};
#define NAMES ARRAY_SIZE(names)
#define STR   4 /* .debug_str */

struct plan {
	struct elf_section sections[NAMES]; /* scn NULL: absent */
	uint64_t at[NAMES];		    /* offset in the image */
	uint64_t strings_at, headers_at, bytes;
	size_t strings_bytes;
	uint16_t n;
};

static uint64_t align(uint64_t at)
{
	return (at + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

static uint64_t room_after(size_t name)
{
	return name == STR ? DWARF_IMAGE_ROOM : 0;
}

static int make_plan(const struct elf_file *file, struct plan *plan)
{
	uint64_t at = align(sizeof(Elf64_Ehdr));
	int rc;

	*plan = (struct plan) { .n = 2, .strings_bytes = 1 };
	for (size_t i = 0; i < NAMES; i++) {
		rc = elf_section__find(file, names[i], &plan->sections[i]);
		if (rc == -EINTR || rc == -ENOMEM || (rc && rc != -ENOENT && i < 2))
			return rc;
		if (rc) {
			plan->sections[i].scn = NULL;
			continue;
		}
		plan->at[i] = at;
		at = align(at + plan->sections[i].size + room_after(i));
		plan->strings_bytes += strlen(names[i]) + 1;
		plan->n++;
	}
	plan->strings_at = at;
	plan->headers_at = align(at + plan->strings_bytes);
	plan->bytes = plan->headers_at + plan->n * sizeof(Elf64_Shdr);
	return plan->sections[0].scn && plan->sections[1].scn ? 0 : -ENOENT;
}

static int fill(const struct elf_file *file, const struct plan *plan, char *image)
{
	Elf64_Ehdr *ehdr = (Elf64_Ehdr *)image;
	Elf64_Shdr *shdr = (Elf64_Shdr *)(image + plan->headers_at), *next = shdr + 1;
	char *strings = image + plan->strings_at;
	size_t string_at = 1;
	int rc = 0;

	memcpy(ehdr->e_ident, ELFMAG, SELFMAG);
	ehdr->e_ident[EI_CLASS] = ELFCLASS64;
	ehdr->e_ident[EI_DATA] = ELFDATA2LSB;
	ehdr->e_ident[EI_VERSION] = EV_CURRENT;
	ehdr->e_type = file->type;
	ehdr->e_machine = EM_X86_64;
	ehdr->e_version = EV_CURRENT;
	ehdr->e_shoff = plan->headers_at;
	ehdr->e_ehsize = sizeof(*ehdr);
	ehdr->e_shentsize = sizeof(*shdr);
	ehdr->e_shnum = plan->n;
	ehdr->e_shstrndx = plan->n - 1;
	for (size_t i = 0; i < NAMES && !rc; i++) {
		if (!plan->sections[i].scn)
			continue;
		*next++ = (Elf64_Shdr) { .sh_name = string_at,
					 .sh_type = SHT_PROGBITS,
					 .sh_offset = plan->at[i],
					 .sh_size = plan->sections[i].size + room_after(i),
					 .sh_addralign = 1 };
		strcpy(strings + string_at, names[i]);
		string_at += strlen(names[i]) + 1;
		rc = elf_section__read(file, &plan->sections[i], image + plan->at[i]);
	}
	*next = (Elf64_Shdr) { .sh_type = SHT_STRTAB,
			       .sh_offset = plan->strings_at,
			       .sh_size = plan->strings_bytes,
			       .sh_addralign = 1 };
	return rc;
}

/* --- abbreviations --- */

/* Returns true if the table ends within the limit. A table without a terminator ends with its
 * section. */
static bool is_table(const uint8_t *at, const uint8_t *end)
{
	struct cfi_reader in = { .at = at, .end = end };
	uint64_t name, form;

	if (end - at > ABBREV_BYTES_MAX)
		in.end = at + ABBREV_BYTES_MAX;
	while (cfi_reader__uleb(&in) && !in.bad) {
		cfi_reader__uleb(&in);
		cfi_reader__skip(&in, 1);
		do {
			name = cfi_reader__uleb(&in);
			form = cfi_reader__uleb(&in);
			if (form == DW_FORM_implicit_const)
				cfi_reader__sleb(&in);
		} while ((name || form) && !in.bad);
	}
	return !in.bad || in.end == end;
}

static uint64_t unit_bytes(const uint8_t *at, uint64_t left, bool *ret_wide)
{
	uint32_t length;
	uint64_t wide;

	*ret_wide = false;
	if (left < sizeof(length))
		return 0;
	memcpy(&length, at, sizeof(length));
	if (length < 0xfffffff0)
		return sizeof(length) + (uint64_t)length;
	*ret_wide = true;
	if (length != UINT32_MAX || left < sizeof(length) + sizeof(wide))
		return 0;
	memcpy(&wide, at + sizeof(length), sizeof(wide));
	return wide > UINT64_MAX - 12 ? 0 : wide + 12;
}

/* Returns the offset of the unit's abbreviations, or UINT64_MAX if its header is malformed. */
static uint64_t abbrev_of(const uint8_t *unit, uint64_t left, bool wide)
{
	size_t at = wide ? 12 : 4;
	uint64_t offset = 0;
	uint16_t version;

	if (left < at + 12)
		return UINT64_MAX;
	memcpy(&version, unit + at, sizeof(version));
	at += sizeof(version) + (version >= 5 ? 2 : 0);
	memcpy(&offset, unit + at, wide ? 8 : 4);
	return offset;
}

int dwarf_image__check_abbrevs(const uint8_t *info, uint64_t size, const uint8_t *abbrevs,
			       uint64_t abbrevs_size)
{
	uint64_t last = UINT64_MAX, offset, n = 0;
	bool wide;
	int rc;

	for (uint64_t at = 0, bytes; at < size; at += bytes) {
		bytes = unit_bytes(info + at, size - at, &wide);
		if (!bytes || bytes > size - at)
			return 0; /* libdw stops here, too */
		offset = abbrev_of(info + at, bytes, wide);
		rc = n++ % 64 ? 0 : quota__look();
		if (rc)
			return rc;
		if (offset == last || offset >= abbrevs_size)
			continue;
		if (!is_table(abbrevs + offset, abbrevs + abbrevs_size))
			return -EBADMSG;
		last = offset;
	}
	return 0;
}

/* --- all of it --- */

static int make_image(const struct elf_file *file, const struct plan *plan, struct elf_file **ret)
{
	char *image = calloc(1, plan->bytes);
	int rc = image ? fill(file, plan, image) : -ENOMEM;

	if (!rc)
		rc = dwarf_image__check_abbrevs((const uint8_t *)image + plan->at[0],
						plan->sections[0].size,
						(const uint8_t *)image + plan->at[1],
						plan->sections[1].size);
	/* elf_file__take_memory() charges the same again */
	quota__give_back(file->account, plan->bytes);
	if (!rc)
		return elf_file__take_memory(image, plan->bytes, file->path, file->account, ret,
					     NULL);
	free(image);
	return rc;
}

int dwarf_image__open(const struct elf_file *file, struct elf_file **ret)
{
	struct plan plan;
	int rc = make_plan(file, &plan);

	if (!rc)
		rc = quota__charge(file->account, QUOTA_RETAINED, plan.bytes);
	if (!rc)
		rc = make_image(file, &plan, ret);
	if (rc == -EFBIG)
		debug_missing__add(file->path, DEBUG_MISSING_TOO_LARGE, NULL, 0);
	if (rc == -EBADMSG)
		debug_missing__add(file->path, DEBUG_MISSING_UNREADABLE, NULL, 0);
	return rc && rc != -ENOMEM && rc != -EINTR ? -ENOENT : rc;
}

uint64_t dwarf_image__unit_bytes(const struct elf_file *image, const char *section, uint64_t offset)
{
	struct elf_section found;
	uint8_t head[12] = {};
	uint64_t n;
	bool wide;

	if (elf_section__find(image, section, &found) || offset >= found.size)
		return 0;
	n = min_of(found.size - offset, (uint64_t)sizeof(head));
	if (elf_file__read_at(image, found.shdr.sh_offset + offset, head, n))
		return 0;
	return unit_bytes(head, n, &wide);
}
