// SPDX-License-Identifier: GPL-2.0-or-later
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/arch/arch.h"
#include "core/base/memory_source.h"
#include "core/base/util.h"
#include "core/files/memory_core.h"
#include "core/files/target_file.h"

/* A core file is an ELF file whose PT_LOAD segments are the memory. The kernel leaves out pages
 * that files still have (core(5), coredump_filter). Such a segment has a p_filesz below its
 * p_memsz. NT_FILE (fs/binfmt_elf.c, fill_files_note()) gives the file and the first page that was
 * mapped there. */
#define FILE_PAGE 4096ULL

struct mapped_file {
	struct core_mapping at;
	uint64_t size; /* bytes of the file, once it is open */
	int fd;	       /* -1: not opened yet; -2: missing, or not a regular file */
};

struct core {
	struct memory memory;
	struct core_elf elf;
	Elf64_Phdr *segments; /* PT_LOAD only */
	size_t n_segments;
	struct mapped_file *files;
};

/* Opens @path if it is a regular file. Other files are not opened even for a moment: a device may
 * react to that, and a core file can name any. Returns the descriptor, or -2. */
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

/* Reads bytes of an open file. The rest of the last page, after the end of the file, is zero, as in
 * memory. */
static bool read_page(const struct mapped_file *file, void *to, uint64_t size, uint64_t offset)
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

/* Reads bytes of a mapped file in its present state; a change since the core was written is not
 * detected. Returns the number of bytes read without a gap. */
static size_t read_file(const struct core *core, uint64_t address, void *to, size_t size)
{
	for (size_t i = 0; i < core->elf.n_files; i++) {
		struct mapped_file *file = &core->files[i];
		const struct core_mapping *at = &file->at;
		size_t n;

		if (address < at->start || address >= at->end)
			continue;
		if (file->fd == -1)
			file->fd = open_file(at->path, &file->size);
		n = min_of(size, at->end - address);
		if (file->fd >= 0 && read_page(file, to, n, at->offset + (address - at->start)))
			return n;
	}
	return 0;
}

/* Reads the bytes from @address on that one segment or one file contains. Returns their number; 0:
 * no segment or file contains the first byte. */
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
			return core_elf__read(&core->elf, to, size, segment->p_offset + at) ? size
											    : 0;
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

	for (size_t i = 0; core->files && i < core->elf.n_files; i++)
		if (core->files[i].fd >= 0)
			close(core->files[i].fd);
	free(core->files);
	free(core->segments);
	core_elf__close(&core->elf);
	free(core);
}

static bool is_sane(const Elf64_Phdr *segment)
{
	return segment->p_type == PT_LOAD && segment->p_filesz <= segment->p_memsz &&
	       segment->p_vaddr + segment->p_memsz >= segment->p_vaddr &&
	       segment->p_offset <= INT64_MAX && segment->p_filesz <= INT64_MAX;
}

static int lay_out(struct core *core)
{
	core->segments = calloc(core->elf.n_segments, sizeof(*core->segments));
	core->files = calloc(core->elf.n_files + 1, sizeof(*core->files));
	if (!core->segments || !core->files)
		return -ENOMEM;
	for (size_t i = 0; i < core->elf.n_segments; i++)
		if (is_sane(&core->elf.segments[i]))
			core->segments[core->n_segments++] = core->elf.segments[i];
	for (size_t i = 0; i < core->elf.n_files; i++)
		core->files[i] = (struct mapped_file) { .at = core->elf.files[i], .fd = -1 };
	return 0;
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
	code = core_elf__open(fd, path, &core->elf, err);
	if (!code && !core->elf.arch->is_ours)
		code = core_elf__refuse(path, core->elf.arch->machine, err);
	if (!code && lay_out(core))
		code = err__set(err, -ENOMEM, "%s: out of memory", path);
	if (code) {
		core__free(&core->memory);
		return code;
	}
	*ret = &core->memory;
	return 0;
}

const struct core_elf *memory__core(const struct memory *memory)
{
	return memory->read == core__read ? &((const struct core *)memory)->elf : NULL;
}
