// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/elf_section.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/elf/elf_generated.h"
#include "core/elf/elf_inflate.h"

/* Largest size that a section may claim, inflated too; bytes. */
#define SECTION_BYTES_MAX (1ULL << 30)

/* Limit of the names of all sections of a file. */
#define NAMES_BYTES_MAX (4ULL << 20)

/* Sections above this size are checked for holes: no linker writes one that is mostly a hole.
 * Bytes. */
#define DENSE_BYTES (64ULL << 20)

/* objcopy --compress-debug-sections=zlib-gnu renames .debug_NAME to .zdebug_NAME. */
#define PLAIN_PREFIX ".debug_"
#define GNU_PREFIX   ".zdebug_"

struct loaded {
	size_t index;
	Elf_Data data; /* d_buf is owned; NULL: unreadable */
	struct loaded *next;
};

/* --- sections of a file --- */

static bool is_mostly_hole(const struct elf_file *file, const GElf_Shdr *shdr)
{
	return file->fd >= 0 && shdr->sh_size > DENSE_BYTES &&
	       quota__data_bytes(file->fd, shdr->sh_offset, shdr->sh_size) < shdr->sh_size / 2;
}

static int describe(const struct elf_file *file, Elf_Scn *scn, bool gnu, struct elf_section *ret)
{
	int rc = 0;

	*ret = (struct elf_section) { .scn = scn };
	if (!scn || !gelf_getshdr(scn, &ret->shdr))
		return -ENOENT;
	if (ret->shdr.sh_type == SHT_NOBITS || !ret->shdr.sh_size)
		return -ENOENT;
	ret->size = ret->shdr.sh_size;
	if (!fits_in(ret->shdr.sh_offset, ret->shdr.sh_size, file->size))
		return -EBADMSG;
	if (ret->shdr.sh_flags & SHF_COMPRESSED)
		rc = elf_inflate__describe(file, ret);
	else if (gnu)
		rc = elf_inflate__describe_gnu(file, ret);
	if (!rc && (ret->size > SECTION_BYTES_MAX || is_mostly_hole(file, &ret->shdr)))
		rc = quota__refuse(file->account);
	return rc ? rc : ret->size ? 0 : -ENOENT;
}

int elf_section__at(const struct elf_file *file, size_t index, struct elf_section *ret)
{
	return describe(file, elf_getscn(file->elf, index), false, ret);
}

/* Returns the names of the sections, or NULL if they are absent or unusable. */
static const Elf_Data *names_of(const struct elf_file *file)
{
	struct elf_section section;
	const Elf_Data *data;
	size_t index;

	if (file->generated)
		return elf_generated__names(file->generated);
	if (elf_getshdrstrndx(file->elf, &index) || elf_section__at(file, index, &section) ||
	    section.shdr.sh_type != SHT_STRTAB || section.stored)
		return NULL;
	if (section.size > NAMES_BYTES_MAX) {
		quota__refuse(file->account);
		return NULL;
	}
	data = elf_section__data(file, &section);
	return data && !((char *)data->d_buf)[data->d_size - 1] ? data : NULL;
}

bool elf_section__has_standard(const struct elf_file *file)
{
	static const char *const standard[] = { ".text",	   ".eh_frame",	     ".dynsym",
						".symtab",	   ".strtab",	     ".debug_info",
						GNU_PREFIX "info", ".debug_info.dwo" };
	const Elf_Data *names = file->elf ? names_of(file) : NULL;
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while (names && (scn = elf_nextscn(file->elf, scn)))
		for (size_t i = 0; i < ARRAY_SIZE(standard) && gelf_getshdr(scn, &shdr); i++)
			if (shdr.sh_name < names->d_size &&
			    !strcmp((char *)names->d_buf + shdr.sh_name, standard[i]))
				return true;
	return false;
}

/* Returns true if @name is the .zdebug_ form of @plain, the name of a section of debug information.
 */
static bool is_gnu_name(const char *name, const char *plain)
{
	size_t gnu_len = sizeof(GNU_PREFIX) - 1, plain_len = sizeof(PLAIN_PREFIX) - 1;

	return !strncmp(name, GNU_PREFIX, gnu_len) && !strncmp(plain, PLAIN_PREFIX, plain_len) &&
	       !strcmp(name + gnu_len, plain + plain_len);
}

int elf_section__find(const struct elf_file *file, const char *name, struct elf_section *ret)
{
	const Elf_Data *names = names_of(file);
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while (names && (scn = elf_nextscn(file->elf, scn))) {
		const char *found = names->d_buf;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_name >= names->d_size)
			continue;
		found += shdr.sh_name;
		if (!strcmp(found, name) || is_gnu_name(found, name))
			return describe(file, scn, strcmp(found, name) != 0, ret);
	}
	return -ENOENT;
}

/* --- reading --- */

int elf_section__read(const struct elf_file *file, const struct elf_section *section, void *to)
{
	int rc;

	if (section->stored)
		return elf_inflate__read(file, section, to);
	rc = elf_file__read_at(file, section->shdr.sh_offset, to, section->size);
	return rc == -EFAULT ? -EBADMSG : rc;
}

static Elf_Type type_of(const GElf_Shdr *shdr)
{
	switch (shdr->sh_type) {
	case SHT_SYMTAB:
	case SHT_DYNSYM:
		return ELF_T_SYM;
	case SHT_RELA:
		return ELF_T_RELA;
	case SHT_NOTE:
		return shdr->sh_addralign == 8 ? ELF_T_NHDR8 : ELF_T_NHDR;
	default:
		return ELF_T_BYTE;
	}
}

static int load(const struct elf_file *file, const struct elf_section *section, Elf_Data *ret)
{
	int rc = quota__charge(file->account, QUOTA_RETAINED, section->size);
	void *bytes;

	if (rc)
		return rc;
	bytes = malloc(section->size);
	rc = bytes ? elf_section__read(file, section, bytes) : -ENOMEM;
	if (rc) {
		quota__give_back(file->account, section->size);
		free(bytes);
		return rc;
	}
	*ret = (Elf_Data) { .d_buf = bytes,
			    .d_type = type_of(&section->shdr),
			    .d_version = EV_CURRENT,
			    .d_size = section->size,
			    .d_align = section->shdr.sh_addralign };
	return 0;
}

Elf_Data *elf_section__data(const struct elf_file *file, const struct elf_section *section)
{
	size_t index = elf_ndxscn(section->scn);
	struct loaded *loaded;
	int rc;

	for (loaded = *file->loaded; loaded; loaded = loaded->next)
		if (loaded->index == index)
			return loaded->data.d_buf ? &loaded->data : NULL;
	loaded = calloc(1, sizeof(*loaded));
	rc = loaded ? load(file, section, &loaded->data) : -ENOMEM;
	if (!loaded || (rc && rc != -EBADMSG)) { /* a later call may succeed */
		free(loaded);
		return NULL;
	}
	loaded->index = index;
	loaded->next = *file->loaded;
	*file->loaded = loaded;
	return loaded->data.d_buf ? &loaded->data : NULL;
}

void elf_file__drop(const struct elf_file *file)
{
	struct loaded *loaded;

	while ((loaded = *file->loaded)) {
		*file->loaded = loaded->next;
		quota__give_back(file->account, loaded->data.d_size);
		free(loaded->data.d_buf);
		free(loaded);
	}
}
