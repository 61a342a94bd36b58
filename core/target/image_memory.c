// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/image_memory.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/elf/elf_memory.h"
#include "core/target/images_state.h"
#include "core/target/target_view.h"

#define PAGE_BYTES 4096ULL
#define AUXV_MAX   64 /* entries; 22 observed */

static bool read_memory(void *ctx, uint64_t address, void *to, size_t size)
{
	return procfs__read_memory(*(uint32_t *)ctx, address, to, size);
}

/* Returns the address of the program's headers, from the kernel's auxiliary vector; 0: unknown. */
static uint64_t program_headers(uint32_t pid)
{
	uint64_t pairs[AUXV_MAX][2], found = 0;
	int fd = procfs__open(pid, "auxv", O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, pairs, sizeof(pairs));

	for (ssize_t i = 0; i < n / (ssize_t)sizeof(pairs[0]); i++)
		if (pairs[i][0] == AT_PHDR)
			found = pairs[i][1];
	close_fd(&fd);
	return found;
}

/* Returns the start of the nearest mapping of the same file from offset 0, at or below @mapping; 0:
 * there is none. */
static uint64_t file_start(const struct procfs_mappings *mappings,
			   const struct procfs_mapping *mapping)
{
	uint64_t found = mapping->offset ? 0 : mapping->start;

	for (size_t i = 0; i < mappings->n_files; i++) {
		const struct procfs_mapping *file = &mappings->files[i];

		if (file->start < mapping->start && !file->offset &&
		    file->inode == mapping->inode && file->dev_major == mapping->dev_major &&
		    file->dev_minor == mapping->dev_minor)
			found = file->start;
	}
	return found;
}

/* Reads the path of the program that the process executes, with a final null. Returns false if the
 * path is unknown. */
static bool read_program(uint32_t pid, char *ret, size_t size)
{
	char path[PROCFS_PATH_BYTES];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%u/exe", procfs__root(), procfs__living(pid));
	n = readlink(path, ret, size - 1);
	ret[n > 0 ? n : 0] = '\0';
	ret[procfs__path_bytes(ret)] = '\0';
	return n > 0;
}

/* Sets the image's name: the path of the program that the process executes, or, for another image,
 * "[memory of PROGRAM]". */
static void name_image(uint32_t pid, bool is_program, char *ret, size_t size)
{
	char program[4096];
	bool known = read_program(pid, program, sizeof(program));
	const char *slash = strrchr(program, '/');

	if (is_program && known)
		snprintf(ret, size, "%s", program);
	else
		snprintf(ret, size, "[memory of %.200s]", slash ? slash + 1 : "a process");
}

/* Returns the image that was copied earlier from equal memory, or NULL. */
static struct image *find_existing(const struct images *images, uint32_t uid, const char *name,
				   const struct elf_memory *memory)
{
	for (const struct by_memory *existing = images->by_memory; existing;
	     existing = existing->next)
		if (existing->uid == uid && !strcmp(existing->image->file->path, name) &&
		    elf_memory__is_same(memory, existing->image->file))
			return existing->image;
	return NULL;
}

static int copy(struct images *images, uint32_t pid, uint32_t uid, const char *name,
		const struct elf_memory *memory, struct quota_account *account, struct image **ret)
{
	struct by_memory *existing = calloc(1, sizeof(*existing));
	char root[PATH_MAX];
	struct elf_file *file;
	uint64_t bias;
	int rc = existing ? elf_memory__copy(memory, name, account, &file, &bias, NULL) : -ENOMEM;

	if (!rc) {
		target_view__current()->root(target_view__current(), pid, root, sizeof(root));
		rc = images__add(images, file, root, ret, NULL);
	}
	if (rc) {
		free(existing);
		return rc;
	}
	*existing = (struct by_memory) { .uid = uid, .image = *ret, .next = images->by_memory };
	images->by_memory = existing;
	return 0;
}

/* Returns the bias, which follows from the address of the image's first segment. */
static uint64_t bias_of(const struct image *image, uint64_t header)
{
	for (size_t i = 0; i < image->file->n_segments; i++)
		if (image->file->segments[i].offset < PAGE_BYTES)
			return header -
			       (image->file->segments[i].vaddr - image->file->segments[i].offset);
	return header;
}

static int find_at(struct images *images, uint32_t pid, uint32_t uid, uint64_t header,
		   const char *name, const struct procfs_mapping *mapping,
		   struct quota_account *account, struct moved_code *ret)
{
	struct elf_memory memory = { .read = read_memory, .ctx = &pid, .header = header };
	struct image *image;
	bool is_new;
	int rc = 0;

	if (!header || !elf_memory__has_code(&memory, mapping->start))
		return -ENOENT;
	image = find_existing(images, uid, name, &memory);
	is_new = !image;
	if (is_new)
		rc = copy(images, pid, uid, name, &memory, account, &image);
	if (rc)
		return rc == -ENOMEM ? rc : -ENOENT;
	image__use(image, now_ns());
	*ret = (struct moved_code) { .bias = bias_of(image, header),
				     .image = image,
				     .is_new = is_new };
	return moved_code__narrow(ret, mapping->start, mapping->end) ? 0 : -ENOENT;
}

int image_memory__find(struct images *images, uint32_t pid, uint32_t uid,
		       const struct procfs_mappings *mappings, const struct procfs_mapping *mapping,
		       struct quota_account *account, struct moved_code *ret)
{
	uint64_t headers[3] = {};
	char name[4096];
	int rc = -ENOENT;

	/* A recording contains only the memory that its stacks need. */
	if (mapping->vdso || procfs__is_recorded())
		return -ENOENT;
	if (mapping->inode && mapping->path[0] == '/')
		headers[0] = file_start(mappings, mapping);
	if (headers[0]) {
		rc = find_at(images, pid, uid, headers[0], mapping->path, mapping, account, ret);
		if (!rc)
			unread_files__remove(images->unread, mapping);
		return rc;
	}
	headers[0] = mapping->start;
	headers[1] = mapping->adjoining;
	headers[2] = program_headers(pid) & ~(PAGE_BYTES - 1);
	for (size_t i = 0; i < ARRAY_SIZE(headers) && rc == -ENOENT; i++) {
		name_image(pid, headers[i] == headers[2], name, sizeof(name));
		rc = find_at(images, pid, uid, headers[i], name, mapping, account, ret);
	}
	return rc;
}

int image_memory__find_program(struct images *images, uint32_t pid,
			       const struct procfs_mapping *mapping, struct moved_code *ret)
{
	char program[4096];
	struct procfs_mapping file = { .is_program = true, .path = program };
	struct target_file found;
	struct image *image = NULL;
	uint64_t header;

	if (mapping->vdso || procfs__is_recorded())
		return -ENOENT;
	header = program_headers(pid) & ~(PAGE_BYTES - 1);
	if (!header || !read_program(pid, program, sizeof(program)) ||
	    procfs__find_mapping(pid, &file, &found))
		return -ENOENT;
	file.inode = found.ino;
	file.dev_major = major(found.dev);
	file.dev_minor = minor(found.dev);
	target_file__done(&found);
	if (images__look(images, pid, &file, &image) == -ENOMEM)
		return -ENOMEM;
	if (!image)
		return -ENOENT;
	*ret = (struct moved_code) { .image = image, .bias = bias_of(image, header) };
	if (!moved_code__narrow(ret, mapping->start, mapping->end))
		return -ENOENT;
	return moved_code__compare(pid, ret);
}
