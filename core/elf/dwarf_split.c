// SPDX-License-Identifier: GPL-2.0-or-later
/* The other halves of skeleton units.
 *
 * A compiler with -gsplit-dwarf leaves a skeleton of each unit in the object: code ranges, the line
 * program, and the name of a .dwo file that contains functions and inlined calls. The dwp program
 * collects .dwo files in one package, whose index has the part of each section that belongs to a
 * unit.
 *
 * libdw joins both halves, but opens the .dwo file by itself: anywhere, of any size, and until
 * elfutils 0.191 never a package. It has no interface to set the other half (docs/decisions/0106).
 * So this file reads the needed sections, bounded and charged. It writes them to a memory file,
 * which is a .dwo file with this unit alone. The skeleton is in braid's own copy
 * (core/elf/dwarf_image.h). Its name is then replaced by the path of the memory file in
 * /proc/self/fd. */
#include "core/elf/dwarf_split.h"

#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/elf/dwarf_image.h"
#include "core/elf/elf_section.h"

#define PART_BYTES_MAX \
	(32ULL << 20) /* bytes of one section of one unit; core/elf/dwarf.c has the same */
#define LINE_BYTES_MAX (2ULL << 20) /* libdw reads all file names in one call */
#define COLUMNS_MAX    16	    /* columns of an index; there are 8 kinds of sections */

enum { PART_INFO, PART_ABBREV, PART_STR_OFFSETS, PART_STR, PART_LINE, PART_RNGLISTS, PARTS };

static const struct {
	const char *name;
	uint32_t column; /* column in the index of a package; 0: all units share the section */
	uint64_t bytes_max;
} kinds[PARTS] = {
	[PART_INFO] = { ".debug_info.dwo", 1, PART_BYTES_MAX },
	[PART_ABBREV] = { ".debug_abbrev.dwo", 3, PART_BYTES_MAX },
	[PART_STR_OFFSETS] = { ".debug_str_offsets.dwo", 6, PART_BYTES_MAX },
	[PART_STR] = { ".debug_str.dwo", 0, PART_BYTES_MAX },
	[PART_LINE] = { ".debug_line.dwo", 4, LINE_BYTES_MAX },
	[PART_RNGLISTS] = { ".debug_rnglists.dwo", 8, PART_BYTES_MAX },
};

struct parts {
	struct part {
		uint8_t *bytes; /* owned; NULL: absent */
		uint64_t size, at;
	} part[PARTS];
};

static void parts__done(struct parts *parts)
{
	for (int i = 0; i < PARTS; i++)
		free(parts->part[i].bytes);
}

/* --- reading --- */

struct range {
	uint64_t at, size; /* bytes of a section; size 0: none, UINT64_MAX: the whole section */
};

/* Reads @range of a section of @file. Returns 0, or -ENOENT if there is no such section. */
static int read_part(const struct elf_file *file, int kind, struct range range, struct part *ret)
{
	struct elf_section section;
	const Elf_Data *data;
	int rc = elf_section__find(file, kinds[kind].name, &section);

	if (rc)
		return rc;
	if (range.size == UINT64_MAX)
		range = (struct range) { 0, section.size };
	if (!fits_in(range.at, range.size, section.size))
		return -EBADMSG;
	if (range.size > kinds[kind].bytes_max)
		return quota__refuse(file->account);
	ret->bytes = malloc(range.size + 1);
	ret->size = range.size;
	if (!ret->bytes)
		return -ENOMEM;
	if (!section.stored)
		return elf_file__read_at(file, section.shdr.sh_offset + range.at, ret->bytes,
					 range.size);
	data = elf_section__data(file, &section);
	if (!data)
		return -EBADMSG;
	memcpy(ret->bytes, (const char *)data->d_buf + range.at, range.size);
	return 0;
}

static int read_parts(const struct elf_file *file, const struct range ranges[PARTS],
		      struct parts *parts)
{
	int rc = 0;

	for (int i = 0; i < PARTS && !rc; i++) {
		if (!ranges[i].size)
			continue;
		rc = read_part(file, i, ranges[i], &parts->part[i]);
		if (rc == -ENOENT && i > PART_ABBREV)
			rc = 0;
	}
	return rc;
}

/* --- packages --- */

struct index {
	const uint8_t *at; /* first byte after the header */
	uint32_t columns, units, slots;
	uint32_t version;
};

static uint32_t word_at(const uint8_t *at, uint64_t i)
{
	uint32_t word;

	memcpy(&word, at + 4 * i, sizeof(word));
	return word;
}

/* Opens the index of a package. Version 5 has two bytes for its number and two of padding; GNU's
 * version 2 has four. */
static int open_index(const struct elf_file *package, struct index *ret)
{
	const Elf_Data *data = elf_file__section(package, ".debug_cu_index", NULL);
	uint64_t bytes;

	if (!data || data->d_size < 16)
		return -ENOENT;
	ret->version = word_at(data->d_buf, 0) & 0xffff;
	ret->columns = word_at(data->d_buf, 1);
	ret->units = word_at(data->d_buf, 2);
	ret->slots = word_at(data->d_buf, 3);
	ret->at = (const uint8_t *)data->d_buf + 16;
	if (ret->columns > COLUMNS_MAX || !ret->slots || ret->slots & (ret->slots - 1))
		return -ENOENT;
	bytes = 12ULL * ret->slots + 4ULL * ret->columns * (1 + 2ULL * ret->units);
	return bytes <= data->d_size - 16 ? 0 : -ENOENT;
}

/* Returns the unit's row, counted from 1; 0: the package has no such unit. */
static uint32_t find_row(const struct index *index, uint64_t id)
{
	uint32_t mask = index->slots - 1, slot = id & mask, step = ((id >> 32) & mask) | 1;
	uint64_t found;

	for (uint32_t i = 0; i < index->slots; i++, slot = (slot + step) & mask) {
		uint32_t row = word_at(index->at + 8ULL * index->slots, slot);

		memcpy(&found, index->at + 8ULL * slot, sizeof(found));
		if (!row || row > index->units)
			return 0;
		if (found == id)
			return row;
	}
	return 0;
}

static int find_ranges(const struct index *index, uint64_t id, struct range ranges[PARTS])
{
	const uint8_t *columns = index->at + 12ULL * index->slots, *offsets, *sizes;
	uint64_t row = find_row(index, id);

	if (!row)
		return -ENOENT;
	offsets = columns + 4ULL * index->columns * row;
	sizes = offsets + 4ULL * index->columns * index->units;
	for (int i = 0; i < PARTS; i++) {
		ranges[i] = (struct range) { 0, kinds[i].column ? 0 : UINT64_MAX };
		for (uint32_t k = 0; k < index->columns && kinds[i].column; k++) {
			if (word_at(columns, k) != kinds[i].column)
				continue;
			/* Number 8 is another section in version 2. */
			if (i == PART_RNGLISTS && index->version < 5)
				continue;
			ranges[i] = (struct range) { word_at(offsets, k), word_at(sizes, k) };
		}
	}
	ranges[PART_STR].size = 0; /* keep_strings() copies those of this unit */
	return 0;
}

/* Copies the strings that the unit refers to from the strings that all units share. */
static int keep_strings(const struct elf_file *package, const struct index *index,
			struct parts *parts)
{
	const Elf_Data *shared = elf_file__section(package, kinds[PART_STR].name, NULL);
	struct part *offsets = &parts->part[PART_STR_OFFSETS], *strings = &parts->part[PART_STR];
	bool wide = index->version >= 5 && offsets->size >= 4 && word_at(offsets->bytes, 0) == ~0U;
	size_t head = index->version < 5 ? 0 : wide ? 16 : 8, size = wide ? 8 : 4, cap = 0;

	if (!offsets->bytes)
		return 0;
	for (size_t at = head; at + size <= offsets->size; at += size) {
		uint64_t from = 0, to = strings->size;
		const char *text, *end;

		memcpy(&from, offsets->bytes + at, size);
		if (!shared || from >= shared->d_size)
			return -EBADMSG;
		text = (const char *)shared->d_buf + from;
		end = memchr(text, '\0', shared->d_size - from);
		if (!end || to + (end - text) + 1 > kinds[PART_STR].bytes_max)
			return -EBADMSG;
		if (array__reserve(&strings->bytes, &cap, to + (end - text) + 1, 1))
			return -ENOMEM;
		memcpy(strings->bytes + to, text, end - text + 1);
		strings->size += end - text + 1;
		memcpy(offsets->bytes + at, &to, size);
	}
	return 0;
}

static int read_from_package(struct dwarf_split *split, uint64_t id, struct parts *parts)
{
	struct range ranges[PARTS];
	struct index index;
	int rc = 0;

	if (!split->package_queried) {
		rc = split->files->open(split->files->ctx, NULL, NULL, &split->package);
		if (rc == -EINTR || rc == -ENOMEM)
			return rc;
		split->package_queried = true;
	}
	rc = split->package ? open_index(split->package, &index) : -ENOENT;
	if (!rc)
		rc = find_ranges(&index, id, ranges);
	if (!rc)
		rc = read_parts(split->package, ranges, parts);
	return rc ? rc : keep_strings(split->package, &index, parts);
}

/* --- writing --- */

static int write_all(int fd, const void *bytes, uint64_t n, uint64_t at)
{
	return n && pwrite(fd, bytes, n, at) != (ssize_t)n ? -ENOMEM : 0;
}

/* Writes @parts to @fd as a .dwo file. Returns its size, or a negative errno. */
static int64_t write_parts(int fd, struct parts *parts, int type)
{
	Elf64_Shdr shdrs[PARTS + 2] = {};
	char names[256] = "";
	uint64_t at = sizeof(Elf64_Ehdr);
	size_t names_n = 1, n = 1;
	int rc = 0;

	for (int i = 0; i < PARTS && !rc; i++) {
		struct part *part = &parts->part[i];

		if (!part->bytes || !part->size)
			continue;
		part->at = at;
		rc = write_all(fd, part->bytes, part->size, at);
		shdrs[n++] = (Elf64_Shdr) { .sh_name = names_n,
					    .sh_type = SHT_PROGBITS,
					    .sh_offset = at,
					    .sh_size = part->size,
					    .sh_addralign = 1 };
		strcpy(names + names_n, kinds[i].name);
		names_n += strlen(kinds[i].name) + 1;
		at = (at + part->size + 15) & ~15ULL;
	}
	shdrs[n++] = (Elf64_Shdr) {
		.sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = names_n, .sh_addralign = 1
	};
	rc = rc ? rc : write_all(fd, names, sizeof(names), at);
	at += sizeof(names);
	rc = rc ? rc : write_all(fd, shdrs, n * sizeof(*shdrs), at);
	if (!rc) {
		Elf64_Ehdr ehdr = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
						 ELFDATA2LSB, EV_CURRENT },
				    .e_type = type,
				    .e_machine = EM_X86_64,
				    .e_version = EV_CURRENT,
				    .e_shoff = at,
				    .e_ehsize = sizeof(ehdr),
				    .e_shentsize = sizeof(*shdrs),
				    .e_shnum = n,
				    .e_shstrndx = n - 1 };

		rc = write_all(fd, &ehdr, sizeof(ehdr), 0);
	}
	return rc ? rc : (int64_t)(at + n * sizeof(*shdrs));
}

/* Creates the memory file. Returns its descriptor, or a negative errno. */
static int make_file(const struct elf_file *image, struct parts *parts, uint64_t *ret_bytes)
{
	const struct part *info = &parts->part[PART_INFO], *abbrev = &parts->part[PART_ABBREV];
	int64_t bytes = sizeof(Elf64_Shdr) * (PARTS + 2) + 1024;
	int fd, rc;

	if (!info->bytes || !abbrev->bytes)
		return -ENOENT;
	rc = dwarf_image__check_abbrevs(info->bytes, info->size, abbrev->bytes, abbrev->size);
	for (int i = 0; i < PARTS; i++)
		bytes += parts->part[i].size + 16;
	if (!rc)
		rc = quota__charge(image->account, QUOTA_RETAINED, bytes);
	if (rc)
		return rc;
	fd = memfd_create("braid-dwo", MFD_CLOEXEC);
	rc = fd < 0 ? -errno : min_of(write_parts(fd, parts, image->type), (int64_t)0);
	if (rc) {
		quota__give_back(image->account, bytes);
		close_fd(&fd);
		return rc;
	}
	*ret_bytes = bytes;
	return fd;
}

/* --- joining --- */

static bool find_name(Dwarf_Die *skeleton, Dwarf_Attribute *ret)
{
	return dwarf_attr(skeleton, DW_AT_dwo_name, ret) ||
	       dwarf_attr(skeleton, DW_AT_GNU_dwo_name, ret);
}

const char *dwarf_split__name(Dwarf_Die *skeleton)
{
	Dwarf_Attribute attr;

	return find_name(skeleton, &attr) ? dwarf_formstring(&attr) : NULL;
}

/* Returns the bytes of a section as libdw reads them. */
static Elf_Data *raw_section(Dwarf *dw, const char *name)
{
	Elf *elf = dwarf_getelf(dw);
	Elf_Scn *scn = NULL;
	const char *found;
	size_t strings;
	GElf_Shdr shdr;

	if (elf_getshdrstrndx(elf, &strings))
		return NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		found = gelf_getshdr(scn, &shdr) ? elf_strptr(elf, strings, shdr.sh_name) : NULL;
		if (found && !strcmp(found, name))
			return elf_rawdata(scn, NULL);
	}
	return NULL;
}

/* Returns the place of the offset of the name's text in .debug_str, or NULL. */
static uint8_t *find_offset(Dwarf *dw, Dwarf_Die *skeleton, const Dwarf_Attribute *name,
			    size_t offset_bytes)
{
	static const uint8_t index_bytes[] = { 1, 2, 3, 4 };
	Elf_Data *offsets = raw_section(dw, ".debug_str_offsets");
	Dwarf_Word base = 8;
	Dwarf_Attribute attr;
	uint64_t index = 0;

	if (name->form == DW_FORM_strp)
		return name->valp;
	if (name->form >= DW_FORM_strx1 && name->form <= DW_FORM_strx4)
		memcpy(&index, name->valp, index_bytes[name->form - DW_FORM_strx1]);
	else if (name->form == DW_FORM_strx && *name->valp < 0x80)
		index = *name->valp;
	else
		return NULL;
	if (dwarf_attr(skeleton, DW_AT_str_offsets_base, &attr) && dwarf_formudata(&attr, &base))
		return NULL;
	if (!offsets || base > offsets->d_size ||
	    !fits_in(base + index * offset_bytes, offset_bytes, offsets->d_size))
		return NULL;
	return (uint8_t *)offsets->d_buf + base + index * offset_bytes;
}

/* Replaces the name by @path, in the space that core/elf/dwarf_image.c reserved after the strings.
 */
static int set_name(Dwarf *dw, Dwarf_Die *skeleton, const char *path)
{
	Elf_Data *strings = raw_section(dw, ".debug_str");
	uint8_t offset_bytes = 4, *offset;
	Dwarf_Attribute name;
	Dwarf_Die die;
	uint64_t at;

	if (!find_name(skeleton, &name) || !strings || strings->d_size < DWARF_IMAGE_ROOM ||
	    strlen(path) >= DWARF_IMAGE_ROOM)
		return -ENOENT;
	if (!dwarf_diecu(skeleton, &die, NULL, &offset_bytes))
		return -ENOENT;
	offset = find_offset(dw, skeleton, &name, offset_bytes);
	if (!offset)
		return -ENOENT;
	at = strings->d_size - DWARF_IMAGE_ROOM;
	strcpy((char *)strings->d_buf + at, path);
	memcpy(offset, &at, offset_bytes);
	return 0;
}

/* Returns true if the memory file has the other half of the unit @id. */
static bool has_unit(int fd, uint64_t id)
{
	Dwarf *dw = dwarf_begin(fd, DWARF_C_READ);
	Dwarf_CU *unit = NULL;
	uint64_t found;
	bool has = false;
	uint8_t type;

	while (dw && !has && !quota__look() &&
	       dwarf_get_units(dw, unit, &unit, NULL, &type, NULL, NULL) == 0)
		has = type == DW_UT_split_compile &&
		      !dwarf_cu_info(unit, NULL, NULL, NULL, NULL, &found, NULL, NULL) &&
		      found == id;
	dwarf_end(dw);
	return has;
}

static int join_file(const struct elf_file *image, Dwarf_Die *skeleton, uint64_t id,
		     struct parts *parts, Dwarf_Die *ret, uint64_t *ret_bytes)
{
	Dwarf *dw = dwarf_cu_getdwarf(skeleton->cu);
	char path[DWARF_IMAGE_ROOM];
	int fd = make_file(image, parts, ret_bytes), rc;

	if (fd < 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	memset(ret, 0, sizeof(*ret));
	rc = has_unit(fd, id) ? set_name(dw, skeleton, path) : -ENOENT;
	if (!rc && dwarf_cu_info(skeleton->cu, NULL, NULL, NULL, ret, NULL, NULL, NULL))
		rc = -ENOENT;
	if (!rc && !ret->cu)
		rc = -ENOENT;
	close_fd(&fd);
	if (rc)
		quota__give_back(image->account, *ret_bytes);
	return rc;
}

static int read_from_file(struct dwarf_split *split, Dwarf_Die *skeleton, struct parts *parts)
{
	static const struct range all[PARTS] = { [0 ... PARTS - 1] = { 0, UINT64_MAX } };
	const char *name = dwarf_split__name(skeleton), *dir = NULL;
	Dwarf_Attribute attr;
	struct elf_file *file;
	int rc;

	if (dwarf_attr(skeleton, DW_AT_comp_dir, &attr))
		dir = dwarf_formstring(&attr);
	if (!name)
		return -ENOENT;
	rc = split->files->open(split->files->ctx, dir ? dir : "", name, &file);
	if (rc)
		return rc;
	rc = read_parts(file, all, parts);
	elf_file__free(file);
	return rc;
}

int dwarf_split__join(struct dwarf_split *split, const struct elf_file *image, Dwarf_Die *skeleton,
		      Dwarf_Die *ret, bool *ret_has_lines, uint64_t *ret_bytes)
{
	struct parts parts = {}, packed = {};
	uint64_t id;
	int rc = -ENOENT;

	if (!split->files || dwarf_cu_info(skeleton->cu, NULL, NULL, NULL, NULL, &id, NULL, NULL))
		return -ENOENT;
	rc = read_from_file(split, skeleton, &parts);
	if (!rc)
		rc = join_file(image, skeleton, id, &parts, ret, ret_bytes);
	*ret_has_lines = parts.part[PART_LINE].bytes;
	if (rc == -ENOENT || rc == -EBADMSG) {
		rc = read_from_package(split, id, &packed);
		if (!rc)
			rc = join_file(image, skeleton, id, &packed, ret, ret_bytes);
		*ret_has_lines = packed.part[PART_LINE].bytes;
	}
	parts__done(&parts);
	parts__done(&packed);
	return rc == -EBADMSG || rc == -EFAULT ? -ENOENT : rc;
}

void dwarf_split__done(struct dwarf_split *split)
{
	elf_file__free(split->package);
	split->package = NULL;
}
