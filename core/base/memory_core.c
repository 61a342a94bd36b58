// SPDX-License-Identifier: GPL-2.0-or-later
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory_source.h"
#include "core/base/target_file.h"
#include "core/base/util.h"

/* A core file is an ELF file whose PT_LOAD segments are the memory. The kernel leaves out what it
 * can get from files again (core(5), coredump_filter): such a segment has a p_filesz below its
 * p_memsz, and the note NT_FILE (fs/binfmt_elf.c, fill_files_note()) tells which file, from which
 * page on, was mapped there. Read with pread and checked here rather than by libelf, which maps or
 * reads a whole file of many gigabytes at once. */
#define SEGMENTS_MAX  65535u /* PN_XNUM - 1: a core with more is refused */
#define NOTES_MAX     (64u << 20)
#define FILE_PAGE     4096ULL
#define FILES_MAX     65536u
#define NOTE_ALIGN(n) (((n) + 3) & ~(uint64_t)3)

struct core_file { /* one entry of NT_FILE */
	uint64_t start, end, offset;
	const char *path; /* in the notes */
	uint64_t size;	  /* of the file, once it is open */
	int fd;		  /* -1: not opened yet; -2: not there, or not a regular file */
};

struct core {
	struct memory memory;
	int fd;
	Elf64_Phdr *segments; /* PT_LOAD only */
	size_t n_segments;
	char *notes; /* NT_FILE's names are in here */
	struct core_file *files;
	size_t n_files;
};

static bool read_all(int fd, void *to, uint64_t size, uint64_t offset)
{
	return offset <= INT64_MAX && size <= INT64_MAX - offset &&
	       pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

/* Opens a regular file only, and nothing else even for a moment: a device may act on it, and a core
 * file can name any. Returns the descriptor, or -2. */
static int open_file(const char *path, uint64_t *ret_size)
{
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	struct target_file found = TARGET_FILE_NONE;

	if (root >= 0 && !target_file__find(root, path, true, &found))
		fd = target_file__open(&found);
	*ret_size = min_of(found.size, INT64_MAX - FILE_PAGE);
	target_file__done(&found);
	close_fd(&root);
	return fd < 0 ? -2 : fd;
}

/* Bytes of an open file; what its last page has behind its end is zeroes, as it is in memory. */
static bool read_page(const struct core_file *file, void *to, uint64_t size, uint64_t offset)
{
	uint64_t pages = (file->size + FILE_PAGE - 1) & ~(FILE_PAGE - 1);
	ssize_t n;

	if (offset > pages || size > pages - offset)
		return false;
	n = pread(file->fd, to, size, (off_t)offset);
	if (n < 0 || offset + n < min_of(offset + size, file->size))
		return false;
	memset((char *)to + n, 0, size - n);
	return true;
}

/* Bytes of a mapped file, as far as it is still what it was; nothing here can tell if it is.
 * Returns how many of them there are without a gap. */
static size_t read_file(const struct core *core, uint64_t address, void *to, size_t size)
{
	for (size_t i = 0; i < core->n_files; i++) {
		struct core_file *file = &core->files[i];
		size_t n;

		if (address < file->start || address >= file->end)
			continue;
		if (file->fd == -1)
			file->fd = open_file(file->path, &file->size);
		n = min_of(size, file->end - address);
		if (file->fd >= 0 && read_page(file, to, n, file->offset + (address - file->start)))
			return n;
	}
	return 0;
}

/* What of the bytes from `address` on one segment, or one file, can give. Returns their number, 0
 * if none. */
static size_t read_part(const struct core *core, uint64_t address, void *to, size_t size)
{
	for (size_t i = 0; i < core->n_segments; i++) {
		const Elf64_Phdr *segment = &core->segments[i];
		uint64_t at = address - segment->p_vaddr;

		if (address < segment->p_vaddr) {
			size = min_of(size, segment->p_vaddr - address);
			continue;
		}
		if (at >= segment->p_memsz)
			continue;
		if (at < segment->p_filesz) {
			size = min_of(size, segment->p_filesz - at);
			return read_all(core->fd, to, size, segment->p_offset + at) ? size : 0;
		}
		return read_file(core, address, to, min_of(size, segment->p_memsz - at));
	}
	return read_file(core, address, to, size); /* gcore leaves out whole segments */
}

static int core__read(const struct memory *memory, uint64_t address, void *to, size_t size)
{
	const struct core *core = (const struct core *)memory;
	size_t done = 0, n;

	if (address + size < address)
		return -EFAULT;
	for (; done < size; done += n) {
		n = read_part(core, address + done, (char *)to + done, size - done);
		if (!n)
			return -EFAULT;
	}
	return 0;
}

static void core__free(struct memory *memory)
{
	struct core *core = (struct core *)memory;

	for (size_t i = 0; i < core->n_files; i++)
		if (core->files[i].fd >= 0)
			close(core->files[i].fd);
	free(core->files);
	free(core->notes);
	free(core->segments);
	close_fd(&core->fd);
	free(core);
}

/* The note: count, page size, then (start, end, offset in pages) of each, then their names. */
static int read_files(struct core *core, const char *desc, uint64_t size)
{
	uint64_t head[2], entry[3];
	const char *name, *end = desc + size;

	if (size < sizeof(head))
		return -EBADMSG;
	memcpy(head, desc, sizeof(head));
	if (head[0] > FILES_MAX || head[0] > (size - sizeof(head)) / sizeof(entry) || core->files)
		return -EBADMSG;
	core->files = calloc(head[0] + 1, sizeof(*core->files));
	if (!core->files)
		return -ENOMEM;
	name = desc + sizeof(head) + head[0] * sizeof(entry);
	for (uint64_t i = 0; i < head[0]; i++) {
		size_t length = strnlen(name, end - name);

		if (name + length == end)
			return -EBADMSG;
		memcpy(entry, desc + sizeof(head) + i * sizeof(entry), sizeof(entry));
		core->files[core->n_files++] = (struct core_file) { .start = entry[0],
								    .end = entry[1],
								    .offset = entry[2] * head[1],
								    .path = name,
								    .fd = -1 };
		name += length + 1;
	}
	return 0;
}

static int read_notes(struct core *core, const Elf64_Phdr *segment)
{
	uint64_t size = segment->p_filesz, at = 0;
	int ret = 0;

	if (core->notes || size > NOTES_MAX)
		return 0; /* NT_FILE is in the first, and needed for memory that is left out only */
	core->notes = malloc(size + 1);
	if (!core->notes)
		return -ENOMEM;
	if (!read_all(core->fd, core->notes, size, segment->p_offset))
		return -EBADMSG;
	while (!ret && size - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		uint64_t desc;

		memcpy(&note, core->notes + at, sizeof(note));
		desc = at + sizeof(note) + NOTE_ALIGN((uint64_t)note.n_namesz);
		if (desc > size || note.n_descsz > size - desc)
			return -EBADMSG;
		if (note.n_type == NT_FILE)
			ret = read_files(core, core->notes + desc, note.n_descsz);
		at = min_of(desc + NOTE_ALIGN((uint64_t)note.n_descsz), size);
	}
	return ret;
}

static bool is_sane(const Elf64_Phdr *segment)
{
	return segment->p_type == PT_LOAD && segment->p_filesz <= segment->p_memsz &&
	       segment->p_vaddr + segment->p_memsz >= segment->p_vaddr &&
	       segment->p_offset <= INT64_MAX && segment->p_filesz <= INT64_MAX;
}

static int read_segments(struct core *core, const Elf64_Ehdr *head)
{
	size_t n = head->e_phnum, kept = 0;
	int ret = 0;

	if (!n || n > SEGMENTS_MAX - 1 || head->e_phentsize != sizeof(Elf64_Phdr))
		return -EBADMSG;
	core->segments = calloc(n, sizeof(*core->segments));
	if (!core->segments)
		return -ENOMEM;
	if (!read_all(core->fd, core->segments, n * sizeof(*core->segments), head->e_phoff))
		return -EBADMSG;
	for (size_t i = 0; !ret && i < n; i++) {
		const Elf64_Phdr *segment = &core->segments[i];

		if (segment->p_type == PT_NOTE)
			ret = read_notes(core, segment);
		else if (is_sane(segment))
			core->segments[kept++] = *segment;
	}
	core->n_segments = kept;
	return ret;
}

static int read_core(struct core *core)
{
	struct stat st;
	Elf64_Ehdr head;

	/* A device or a pipe could block the read for ever. */
	if (fstat(core->fd, &st) || !S_ISREG(st.st_mode) ||
	    !read_all(core->fd, &head, sizeof(head), 0))
		return -EBADMSG;
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_type != ET_CORE ||
	    head.e_machine != EM_X86_64)
		return -EBADMSG;
	return read_segments(core, &head);
}

int memory__of_core(int fd, const char *path, struct memory **ret, struct err *err)
{
	struct core *core = calloc(1, sizeof(*core));
	int code;

	if (!core) {
		close_fd(&fd);
		return err__set(err, -ENOMEM, "%s: out of memory", path);
	}
	core->memory = (struct memory) { .read = core__read, .free = core__free };
	core->fd = fd;
	code = read_core(core);
	if (code) {
		core__free(&core->memory);
		return err__set(err, code, "%s: %s", path,
				code == -ENOMEM ? "out of memory"
						: "not a core file of an x86-64 process");
	}
	*ret = &core->memory;
	return 0;
}
