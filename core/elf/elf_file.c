// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/elf_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/fd_limit.h"
#include "core/base/util.h"
#include "core/elf/elf_symbols.h"

/* What a section may claim to have, inflated too. */
#define SECTION_BYTES_MAX (1ULL << 30)

/* What the public struct is embedded in. */
struct image {
	struct elf_file file;
	void *memory; /* libelf writes into memory images when it decompresses: our own copy */
};

static bool range_is_sane(uint64_t start, uint64_t size)
{
	return start + size >= start;
}

static int read_segments(struct elf_file *file, size_t n_phdrs)
{
	file->segments = calloc(n_phdrs ? n_phdrs : 1, sizeof(*file->segments));
	if (!file->segments)
		return -ENOMEM;
	for (size_t i = 0; i < n_phdrs; i++) {
		struct elf_segment *segment = &file->segments[file->n_segments];
		GElf_Phdr phdr;

		if (!gelf_getphdr(file->elf, i, &phdr))
			return -EBADMSG;
		if (phdr.p_type != PT_LOAD)
			continue;
		if (!range_is_sane(phdr.p_offset, phdr.p_filesz) ||
		    !range_is_sane(phdr.p_vaddr, phdr.p_memsz) || phdr.p_filesz > phdr.p_memsz)
			return -EBADMSG;
		segment->offset = phdr.p_offset;
		segment->filesz = phdr.p_filesz;
		segment->vaddr = phdr.p_vaddr;
		segment->memsz = phdr.p_memsz;
		segment->exec = phdr.p_flags & PF_X;
		file->n_segments++;
	}
	return 0;
}

/* Returns true once the build-id was found in these notes. */
static bool take_build_id(struct elf_file *file, Elf_Data *notes)
{
	size_t offset = 0, name_at, desc_at;
	GElf_Nhdr nhdr;

	while (notes && (offset = gelf_getnote(notes, offset, &nhdr, &name_at, &desc_at)) > 0) {
		if (nhdr.n_type != NT_GNU_BUILD_ID || nhdr.n_namesz != sizeof("GNU") ||
		    memcmp((char *)notes->d_buf + name_at, "GNU", sizeof("GNU")) != 0)
			continue;
		if (!nhdr.n_descsz || nhdr.n_descsz > ELF_BUILD_ID_MAX)
			continue;
		memcpy(file->build_id, (char *)notes->d_buf + desc_at, nhdr.n_descsz);
		file->build_id_len = nhdr.n_descsz;
		return true;
	}
	return false;
}

/* Program headers first: they survive the stripping of section headers. */
static void read_build_id(struct elf_file *file, size_t n_phdrs)
{
	Elf_Scn *scn = NULL;
	GElf_Phdr phdr;
	GElf_Shdr shdr;

	for (size_t i = 0; i < n_phdrs; i++) {
		if (!gelf_getphdr(file->elf, i, &phdr) || phdr.p_type != PT_NOTE)
			continue;
		if (take_build_id(file, elf_getdata_rawchunk(
						file->elf, phdr.p_offset, phdr.p_filesz,
						phdr.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR)))
			return;
	}
	while ((scn = elf_nextscn(file->elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_NOTE)
			continue;
		if (take_build_id(file, elf_getdata(scn, NULL)))
			return;
	}
}

static int check_header(struct elf_file *file, struct err *err)
{
	GElf_Ehdr ehdr;

	if (!file->elf)
		return err__set(err, -EBADMSG, "%s: malformed ELF file: %s", file->path,
				elf_errmsg(-1));
	if (elf_kind(file->elf) != ELF_K_ELF)
		return err__set(err, -ENOEXEC, "%s: not an ELF file", file->path);
	if (gelf_getclass(file->elf) != ELFCLASS64)
		return err__set(err, -ENOTSUP, "%s: not a 64-bit ELF file", file->path);
	if (!gelf_getehdr(file->elf, &ehdr))
		return err__set(err, -EBADMSG, "%s: malformed ELF header", file->path);
	if (ehdr.e_ident[EI_DATA] != ELFDATA2LSB || ehdr.e_machine != EM_X86_64)
		return err__set(err, -ENOTSUP, "%s: not an x86-64 ELF file", file->path);
	if (ehdr.e_type != ET_EXEC && ehdr.e_type != ET_DYN)
		return err__set(err, -ENOTSUP, "%s: neither a program nor a shared library",
				file->path);
	file->type = ehdr.e_type;
	return 0;
}

static int load(struct elf_file *file, struct err *err)
{
	size_t n_phdrs;
	GElf_Ehdr ehdr;
	int rc;

	rc = check_header(file, err);
	if (rc)
		return rc;
	/* libelf cuts the number down to what the file holds. */
	if (elf_getphdrnum(file->elf, &n_phdrs) != 0 || !gelf_getehdr(file->elf, &ehdr) ||
	    (ehdr.e_phnum != PN_XNUM && ehdr.e_phnum != n_phdrs))
		return err__set(err, -EBADMSG, "%s: malformed program headers", file->path);
	rc = read_segments(file, n_phdrs);
	if (rc)
		return err__set(err, rc, "%s: %s", file->path,
				rc == -ENOMEM ? "out of memory" : "malformed program headers");
	read_build_id(file, n_phdrs);
	return 0;
}

static struct image *image_new(int fd, const char *path)
{
	struct image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->file.fd = fd;
	image->file.path = strdup(path);
	if (!image->file.path) {
		free(image);
		return NULL;
	}
	return image;
}

int elf_file__open(int fd, const char *path, struct elf_file **ret, struct err *err)
{
	struct image *image;
	struct stat st;
	int rc;

	fd = fd_limit__hold(fd);
	if (fd < 0)
		return err__set(err, fd, "%s: %s", path, strerror(-fd));
	image = image_new(fd, path);
	if (!image) {
		close_fd(&fd);
		return err__set(err, -ENOMEM, "%s: out of memory", path);
	}
	/* A device or a pipe could block the read for ever. */
	if (fstat(fd, &st) != 0) {
		rc = err__set(err, -errno, "%s: %s", path, strerror(errno));
	} else if (!S_ISREG(st.st_mode)) {
		rc = err__set(err, -ENOEXEC, "%s: not a regular file", path);
	} else if (st.st_size < EI_NIDENT) {
		rc = err__set(err, -ENOEXEC, "%s: not an ELF file", path);
	} else {
		elf_version(EV_CURRENT);
		image->file.elf = elf_begin(fd, ELF_C_READ, NULL);
		rc = load(&image->file, err);
	}
	if (rc) {
		elf_file__free(&image->file);
		return rc;
	}
	*ret = &image->file;
	return 0;
}

int elf_file__open_memory(const void *data, size_t size, const char *path, struct elf_file **ret,
			  struct err *err)
{
	struct image *image;
	int rc;

	if (size < EI_NIDENT)
		return err__set(err, -ENOEXEC, "%s: not an ELF file", path);
	image = image_new(-1, path);
	if (image)
		image->memory = malloc(size);
	if (!image || !image->memory) {
		elf_file__free(image ? &image->file : NULL);
		return err__set(err, -ENOMEM, "%s: out of memory", path);
	}
	memcpy(image->memory, data, size);
	elf_version(EV_CURRENT);
	image->file.elf = elf_memory(image->memory, size);
	rc = load(&image->file, err);
	if (rc) {
		elf_file__free(&image->file);
		return rc;
	}
	*ret = &image->file;
	return 0;
}

void elf_file__free(struct elf_file *file)
{
	struct image *image = (struct image *)file; /* its first member */

	if (!file)
		return;
	elf_end(file->elf);
	close_fd(&file->fd);
	free(file->segments);
	free(file->path);
	free(image->memory);
	free(image);
}

bool elf_file__offset_to_vaddr(const struct elf_file *file, uint64_t offset, uint64_t *ret_vaddr)
{
	for (size_t i = 0; i < file->n_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];

		if (offset < segment->offset || offset - segment->offset >= segment->filesz)
			continue;
		*ret_vaddr = segment->vaddr + (offset - segment->offset);
		return true;
	}
	return false;
}

static Elf_Data *section_data(Elf_Scn *scn, GElf_Shdr *shdr)
{
	GElf_Chdr chdr;
	Elf_Data *data;

	if (shdr->sh_type == SHT_NOBITS || shdr->sh_size > SECTION_BYTES_MAX)
		return NULL;
	if (shdr->sh_flags & SHF_COMPRESSED) {
		if (!gelf_getchdr(scn, &chdr) || chdr.ch_size > SECTION_BYTES_MAX ||
		    elf_compress(scn, 0, 0) < 0 || !gelf_getshdr(scn, shdr))
			return NULL;
	}
	data = elf_getdata(scn, NULL);
	return data && data->d_buf && data->d_size ? data : NULL;
}

Elf_Data *elf_file__section(const struct elf_file *file, const char *name, GElf_Shdr *ret_shdr)
{
	Elf_Data *names, *data;
	Elf_Scn *scn = NULL;
	size_t names_at;

	if (elf_getshdrstrndx(file->elf, &names_at) != 0)
		return NULL;
	names = elf_strings__open(file->elf, names_at);
	while (names && (scn = elf_nextscn(file->elf, scn))) {
		const char *found;
		GElf_Shdr shdr;

		if (!gelf_getshdr(scn, &shdr))
			continue;
		found = elf_strings__get(names, shdr.sh_name);
		if (!found || strcmp(found, name) != 0)
			continue;
		data = section_data(scn, &shdr);
		if (data && ret_shdr)
			*ret_shdr = shdr;
		return data;
	}
	return NULL;
}

/* Not by elf_rawfile for files: that would read all of it, and take sections over for good. */
static bool read_at(const struct elf_file *file, uint64_t offset, void *buf, size_t len)
{
	size_t size;
	const char *base;

	if (file->fd >= 0)
		return pread(file->fd, buf, len, offset) == (ssize_t)len;
	base = elf_rawfile(file->elf, &size);
	if (!base || offset > size || len > size - offset)
		return false;
	memcpy(buf, base + offset, len);
	return true;
}

int elf_file__read(const struct elf_file *file, uint64_t vaddr, void *buf, size_t len)
{
	for (size_t i = 0; i < file->n_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];
		uint64_t at = vaddr - segment->vaddr;

		if (vaddr < segment->vaddr || at > segment->filesz || len > segment->filesz - at)
			continue;
		if (at <= INT64_MAX - segment->offset &&
		    read_at(file, at + segment->offset, buf, len))
			return 0;
	}
	return -EFAULT;
}

/* The first defined symbol that has this name; the table's end if none has. Where the name stands
 * in the table of strings is known for its first occurrence, `first`, and is the whole comparison
 * if `only_first`: names are all different there as a rule. */
static size_t find_from(const struct elf_symbols *symbols, const char *name, size_t first,
			bool only_first)
{
	const Elf64_Sym *all = symbols->data->d_buf;

	for (size_t i = 0; i < symbols->n; i++) {
		const char *found;

		if (all[i].st_name < first || (only_first && all[i].st_name != first) ||
		    all[i].st_shndx == SHN_UNDEF)
			continue;
		found = elf_strings__get(symbols->strings, all[i].st_name);
		if (found && strcmp(found, name) == 0)
			return i;
	}
	return symbols->n;
}

static int find_in(const struct elf_file *file, const char *section, const char *name,
		   uint64_t *ret_vaddr, uint64_t *ret_size)
{
	struct elf_symbols symbols;
	const char *strings, *first;
	GElf_Sym sym;
	size_t i;

	if (!elf_symbols__open(file, section, &symbols))
		return -ENOENT;
	/* Most images have none of the symbols that runtimes ask for, and some have millions of
	 * others: the names at a stretch are read several times faster than one after the other. */
	strings = symbols.strings->d_buf;
	first = memmem(strings, symbols.strings->d_size, name, strlen(name) + 1);
	if (!first)
		return -ENOENT;
	i = find_from(&symbols, name, first - strings, true);
	if (i == symbols.n) /* it is the end of another name, and stands there again */
		i = find_from(&symbols, name, first - strings, false);
	if (!elf_symbols__get(&symbols, i, &sym))
		return -ENOENT;
	*ret_vaddr = sym.st_value;
	if (ret_size)
		*ret_size = sym.st_size;
	return 0;
}

int elf_file__find_symbol(const struct elf_file *file, const char *name, uint64_t *ret_vaddr,
			  uint64_t *ret_size)
{
	int rc = find_in(file, ".dynsym", name, ret_vaddr, ret_size);

	return rc ? find_in(file, ".symtab", name, ret_vaddr, ret_size) : rc;
}
