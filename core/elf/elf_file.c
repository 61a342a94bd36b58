// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/elf_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/arch/arch.h"
#include "core/base/fd_limit.h"
#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/elf/elf_generated.h"
#include "core/elf/elf_section.h"
#include "core/elf/elf_symbols.h"

/* Limits of the headers. libelf allocates an entry of a few hundred bytes for each section that a
 * file claims to have, and loops over segments are everywhere. Seen: 5,000 sections, 14 program
 * headers. */
#define SECTIONS_MAX 65536
#define PHDRS_MAX    1024

/* Limits of the search for the build-id. Its note has 36 bytes and is one of the first notes. */
#define NOTE_BYTES_MAX 65536
#define NOTES_MAX      64

/* An open image; the public struct is its first member. */
struct image {
	struct elf_file file;
	struct loaded *loaded;
	void *memory; /* owned; charged as QUOTA_RETAINED */
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

/* Searches the notes at @at for the build-id. Returns 1 if it was found, 0 if not, or a negative
 * errno. */
static int take_build_id(struct elf_file *file, uint64_t at, uint64_t size, bool wide)
{
	size_t offset = 0, name_at, desc_at;
	char notes[NOTE_BYTES_MAX];
	Elf_Data data = { .d_buf = notes,
			  .d_type = wide ? ELF_T_NHDR8 : ELF_T_NHDR,
			  .d_version = EV_CURRENT };
	GElf_Nhdr nhdr;
	int rc;

	data.d_size = min_of(size, (uint64_t)sizeof(notes));
	rc = elf_file__read_at(file, at, notes, data.d_size);
	if (rc)
		return rc == -EFAULT ? 0 : rc;
	while ((offset = gelf_getnote(&data, offset, &nhdr, &name_at, &desc_at)) > 0) {
		if (nhdr.n_type != NT_GNU_BUILD_ID || nhdr.n_namesz != sizeof("GNU") ||
		    memcmp(notes + name_at, "GNU", sizeof("GNU")) != 0)
			continue;
		if (!nhdr.n_descsz || nhdr.n_descsz > ELF_BUILD_ID_MAX)
			continue;
		memcpy(file->build_id, notes + desc_at, nhdr.n_descsz);
		file->build_id_len = nhdr.n_descsz;
		return 1;
	}
	return 0;
}

/* Reads the build-id, from program headers first: they remain when section headers are stripped. */
static int read_build_id(struct elf_file *file, size_t n_phdrs)
{
	int rc = 0, n = 0;
	Elf_Scn *scn = NULL;
	GElf_Phdr phdr;
	GElf_Shdr shdr;

	for (size_t i = 0; i < n_phdrs && !rc && n < NOTES_MAX; i++) {
		if (!gelf_getphdr(file->elf, i, &phdr) || phdr.p_type != PT_NOTE)
			continue;
		rc = take_build_id(file, phdr.p_offset, phdr.p_filesz, phdr.p_align == 8);
		n++;
	}
	while (!rc && n < NOTES_MAX && (scn = elf_nextscn(file->elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_NOTE ||
		    shdr.sh_flags & SHF_COMPRESSED)
			continue;
		rc = take_build_id(file, shdr.sh_offset, shdr.sh_size, false);
		n++;
	}
	return min_of(rc, 0);
}

/* Checks the counts that libelf trusts when it opens a file. */
static int check_counts(struct elf_file *file, struct err *err)
{
	Elf64_Shdr first = {};
	Elf64_Ehdr ehdr;
	int rc = elf_file__read_at(file, 0, &ehdr, sizeof(ehdr));

	if (rc == -EINTR)
		return err__set(err, rc, "%s: interrupted", file->path);
	if (rc || memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 ||
	    ehdr.e_ident[EI_CLASS] != ELFCLASS64 || ehdr.e_ident[EI_DATA] != ELFDATA2LSB)
		return 0; /* check_header() reports the kind of the file */
	if (ehdr.e_shoff && ehdr.e_shnum == 0)
		rc = elf_file__read_at(file, ehdr.e_shoff, &first, sizeof(first));
	if (rc == -EINTR)
		return err__set(err, rc, "%s: interrupted", file->path);
	if (first.sh_size > SECTIONS_MAX ||
	    (ehdr.e_phnum > PHDRS_MAX &&
	     fits_in(ehdr.e_phoff, ehdr.e_phnum * sizeof(Elf64_Phdr), file->size)))
		return err__set(err, quota__refuse(file->account),
				"%s: too many sections or program headers", file->path);
	return 0;
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
	file->arch = arch__of_machine(ehdr.e_machine);
	if (ehdr.e_ident[EI_DATA] != ELFDATA2LSB || !file->arch ||
	    (!file->arch->is_ours && !file->any_machine))
		return err__set(err, -ENOTSUP,
				"%s: %s ELF file: this build of braid unwinds x86-64 code only",
				file->path, arch__describe(ehdr.e_machine));
	if (ehdr.e_type != ET_EXEC && ehdr.e_type != ET_DYN && !file->any_type)
		return err__set(err, -ENOTSUP, "%s: neither a program nor a shared library",
				file->path);
	file->type = ehdr.e_type;
	return 0;
}

/* Replaces the headers of a file whose section headers were removed or are invalid. */
static int make_sections(struct elf_file *file)
{
	size_t size;
	char *headers;
	int rc;

	if (elf_section__has_standard(file))
		return 0;
	elf_file__drop(file);
	rc = elf_generated__new(file, &file->generated);
	if (rc)
		return rc == -ENOENT || rc == -EFBIG ? 0 : rc;
	elf_end(file->elf);
	headers = elf_generated__headers(file->generated, &size);
	file->elf = elf_memory(headers, size);
	return file->elf ? 0 : -EBADMSG;
}

static int load(struct elf_file *file, struct err *err)
{
	size_t n_phdrs;
	GElf_Ehdr ehdr;
	int rc;

	rc = make_sections(file);
	if (rc)
		return err__set(err, rc, "%s: %s", file->path,
				rc == -EINTR ? "interrupted" : "malformed program headers");
	rc = check_header(file, err);
	if (rc)
		return rc;
	/* libelf reduces the number to the program headers that are in the file */
	if (elf_getphdrnum(file->elf, &n_phdrs) != 0 || !gelf_getehdr(file->elf, &ehdr) ||
	    (ehdr.e_phnum != PN_XNUM && ehdr.e_phnum != n_phdrs))
		return err__set(err, -EBADMSG, "%s: malformed program headers", file->path);
	rc = read_segments(file, n_phdrs);
	if (rc)
		return err__set(err, rc, "%s: %s", file->path,
				rc == -ENOMEM ? "out of memory" : "malformed program headers");
	rc = read_build_id(file, n_phdrs);
	if (rc == -EINTR)
		return err__set(err, rc, "%s: interrupted", file->path);
	return 0;
}

static struct image *image_new(int fd, const char *path)
{
	struct image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->file.fd = fd;
	image->file.loaded = &image->loaded;
	image->file.path = strdup(path);
	if (!image->file.path) {
		free(image);
		return NULL;
	}
	return image;
}

static int open_as(int fd, const char *path, bool any_type, bool any_machine, struct elf_file **ret,
		   struct err *err)
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
	image->file.any_type = any_type;
	image->file.any_machine = any_machine;
	/* A device or a pipe could block the read forever. */
	if (fstat(fd, &st) != 0) {
		rc = err__set(err, -errno, "%s: %s", path, strerror(errno));
	} else if (!S_ISREG(st.st_mode)) {
		rc = err__set(err, -ENOEXEC, "%s: not a regular file", path);
	} else if (st.st_size < EI_NIDENT) {
		rc = err__set(err, -ENOEXEC, "%s: not an ELF file", path);
	} else {
		image->file.size = st.st_size;
		image->file.account = quota__open_fd(fd, path);
		rc = check_counts(&image->file, err);
		elf_version(EV_CURRENT);
		if (!rc)
			image->file.elf = elf_begin(fd, ELF_C_READ, NULL);
		if (!rc)
			rc = load(&image->file, err);
	}
	if (rc) {
		elf_file__free(&image->file);
		return rc;
	}
	*ret = &image->file;
	return 0;
}

int elf_file__open(int fd, const char *path, struct elf_file **ret, struct err *err)
{
	return open_as(fd, path, false, false, ret, err);
}

int elf_file__open_any(int fd, const char *path, struct elf_file **ret, struct err *err)
{
	return open_as(fd, path, true, false, ret, err);
}

int elf_file__open_foreign(int fd, const char *path, struct elf_file **ret, struct err *err)
{
	return open_as(fd, path, false, true, ret, err);
}

/* Opens @data. Takes ownership of @data and of the reference to @account, also on failure. */
static int open_owned(void *data, size_t size, const char *path, struct quota_account *account,
		      struct elf_file **ret, struct err *err)
{
	struct image *image = image_new(-1, path);
	int rc;

	if (!image) {
		quota__give_back(account, size);
		quota__close(account);
		free(data);
		return err__set(err, -ENOMEM, "%s: out of memory", path);
	}
	image->memory = data;
	image->file.size = size;
	image->file.account = account;
	elf_version(EV_CURRENT);
	rc = check_counts(&image->file, err);
	if (!rc) {
		image->file.elf = elf_memory(data, size);
		rc = load(&image->file, err);
	}
	if (rc) {
		elf_file__free(&image->file);
		return rc;
	}
	*ret = &image->file;
	return 0;
}

int elf_file__take_memory(void *data, size_t size, const char *path, struct quota_account *account,
			  struct elf_file **ret, struct err *err)
{
	int rc = size < EI_NIDENT ? -ENOEXEC : quota__charge(account, QUOTA_RETAINED, size);

	if (!rc)
		return open_owned(data, size, path, quota__hold(account), ret, err);
	free(data);
	return err__set(err, rc, "%s: %s", path,
			rc == -ENOEXEC ? "not an ELF file" : strerror(-rc));
}

int elf_file__open_memory(const void *data, size_t size, const char *path, struct elf_file **ret,
			  struct err *err)
{
	void *copy = malloc(size + 1);

	if (!copy)
		return err__set(err, -ENOMEM, "%s: out of memory", path);
	memcpy(copy, data, size);
	return elf_file__take_memory(copy, size, path, NULL, ret, err);
}

void elf_file__free(struct elf_file *file)
{
	struct image *image = (struct image *)file; /* @file is its first member */

	if (!file)
		return;
	elf_file__drop(file);
	elf_end(file->elf);
	elf_generated__free(file->generated);
	close_fd(&file->fd);
	free(file->segments);
	free(file->path);
	if (image->memory)
		quota__give_back(file->account, file->size);
	free(image->memory);
	quota__close(file->account);
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

Elf_Data *elf_file__section(const struct elf_file *file, const char *name, GElf_Shdr *ret_shdr)
{
	struct elf_section section;
	Elf_Data *data;

	if (elf_section__find(file, name, &section))
		return NULL;
	data = elf_section__data(file, &section);
	if (data && ret_shdr) {
		*ret_shdr = section.shdr;
		ret_shdr->sh_size = section.size;
	}
	return data;
}

/* Not by elf_rawfile(), which would read the whole file. */
int elf_file__read_at(const struct elf_file *file, uint64_t offset, void *buf, size_t len)
{
	const struct image *image = (const struct image *)file;

	if (file->fd >= 0)
		return quota__pread(file->account, file->fd, offset, buf, len);
	if (!fits_in(offset, len, file->size))
		return -EFAULT;
	if (len)
		memcpy(buf, (const char *)image->memory + offset, len);
	return 0;
}

bool elf_file__entry(const Elf_Data *data, size_t i, void *to, size_t size)
{
	if (!data || i >= data->d_size / size)
		return false;
	memcpy(to, (const char *)data->d_buf + i * size, size);
	return true;
}

int elf_file__read(const struct elf_file *file, uint64_t vaddr, void *buf, size_t len)
{
	for (size_t i = 0; i < file->n_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];
		uint64_t at = vaddr - segment->vaddr;
		int rc = -EFAULT;

		if (vaddr < segment->vaddr || at > segment->filesz || len > segment->filesz - at)
			continue;
		if (at <= INT64_MAX - segment->offset)
			rc = elf_file__read_at(file, at + segment->offset, buf, len);
		if (rc != -EFAULT)
			return rc;
	}
	return -EFAULT;
}

/* Returns the index of the first defined symbol with this name, or symbols->n. @first is the offset
 * of the name's first occurrence in the table of strings. With @only_first, compares only that
 * offset: as a rule, all names in the table of strings are different. */
static size_t find_from(const struct elf_symbols *symbols, const char *name, size_t first,
			bool only_first)
{
	const Elf64_Sym *all = symbols->data->d_buf;

	for (size_t i = 0; i < symbols->n && !quota__look_at(i); i++) {
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

	if (!elf_symbols__open(file, section, &symbols) || quota__look())
		return -ENOENT;
	/* Most images have none of the symbols that runtimes request, and some have millions of
	 * others. One search over the whole table of strings is several times faster than a search
	 * name by name. */
	strings = symbols.strings->d_buf;
	first = memmem(strings, symbols.strings->d_size, name, strlen(name) + 1);
	if (!first)
		return -ENOENT;
	i = find_from(&symbols, name, first - strings, true);
	if (i == symbols.n) /* @first is the end of another name, and the name occurs again */
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
