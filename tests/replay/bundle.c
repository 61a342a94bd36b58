// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/replay/bundle.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/arch/arch.h"
#include "core/base/util.h"
#include "core/target/procfs.h"
#include "tests/replay/pack.h"

#define IMAGE_BYTES_MAX (1ULL << 30)

struct image {
	char path[PACK_NAME_BYTES];
	struct pack pack;
	int fd; /* laid out file */
};

struct constant { /* a mapping of a case whose bytes are those of an image */
	uint64_t start, end, offset;
	size_t image; /* number of the image */
};

struct bundle {
	struct pack pack;
	size_t at;
	uint32_t pid;
	char root[128]; /* root of the files, in place of /proc */
	struct procfs_source source;
	struct image *images;
	size_t n_images, cap_images;
	struct memory *memory; /* memory of the present case */
	struct constant *constants;
	size_t n_constants, cap_constants;
	uint64_t sp; /* stack pointer of the case */
	char lacks[PACK_NAME_BYTES + 100];
	bool forgives;
};

/* --- laying out --- */

static bool is_safe(const char *path)
{
	return path[0] && path[0] != '/' && !strstr(path, "..") && strlen(path) < PACK_NAME_BYTES;
}

/* Creates a file below the target's directory, with all directories that lead to it. Returns its
 * descriptor or a negative errno. */
static int create(const struct bundle *bundle, const char *path)
{
	char full[sizeof(bundle->root) + PACK_NAME_BYTES + 32], *slash;
	int n = snprintf(full, sizeof(full), "%s/%u/%s", bundle->root, bundle->pid, path), fd;

	if (!is_safe(path) || n < 0 || (size_t)n >= sizeof(full))
		return -EBADMSG;
	for (slash = strchr(full + strlen(bundle->root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(full, 0700) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	fd = open(full, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : fd;
}

static int add_file(struct bundle *bundle, const struct pack_entry *entry)
{
	int fd;

	bundle->pid = entry->a;
	fd = create(bundle, entry->name);
	if (fd < 0)
		return fd;
	if (write(fd, entry->bytes, entry->size) != (ssize_t)entry->size) {
		close(fd);
		return -EIO;
	}
	/* The process gets the user of the replay, who also owns the files that are laid out. */
	if (!strcmp(entry->name, "status"))
		dprintf(fd, "Uid:\t%u\t%u\t%u\t%u\n", getuid(), geteuid(), geteuid(), geteuid());
	close(fd);
	return 0;
}

static int fill_image(struct image *image)
{
	struct pack_entry entry;
	uint64_t size = 0;
	size_t at = 0;
	int ret;

	while ((ret = pack__next(&image->pack, &at, &entry)) > 0) {
		if (entry.tag == PACK_SIZE && !size) {
			size = entry.a;
			if (size > IMAGE_BYTES_MAX || ftruncate(image->fd, size))
				return -EBADMSG;
		} else if (entry.tag == PACK_PIECE) {
			if (entry.a > size || entry.size > size - entry.a)
				return -EBADMSG;
			if (pwrite(image->fd, entry.bytes, entry.size, entry.a) !=
			    (ssize_t)entry.size)
				return -EIO;
		}
	}
	return ret;
}

static int add_image(struct bundle *bundle, const char *dir, const struct pack_entry *entry,
		     struct err *err)
{
	char file[PACK_NAME_BYTES * 2], in_root[PACK_NAME_BYTES + 8];
	struct image *image;
	int ret = array__reserve(&bundle->images, &bundle->cap_images, bundle->n_images + 1,
				 sizeof(*bundle->images));

	if (ret)
		return ret;
	if (!entry->size || entry->size >= PACK_NAME_BYTES || entry->name[0] != '/' ||
	    memchr(entry->bytes, '/', entry->size) || memchr(entry->bytes, 0, entry->size))
		return err__set(err, -EBADMSG, "malformed entry of an image");
	image = &bundle->images[bundle->n_images++];
	*image = (struct image) { .fd = -1 };
	snprintf(image->path, sizeof(image->path), "%s", entry->name);
	snprintf(file, sizeof(file), "%s/%.*s", dir, (int)entry->size, entry->bytes);
	snprintf(in_root, sizeof(in_root), "root%s", image->path);
	ret = pack__read(file, &image->pack, err);
	if (ret)
		return ret;
	image->fd = create(bundle, in_root);
	ret = image->fd < 0 ? image->fd : fill_image(image);
	return ret ? err__set(err, ret, "%s: %s", file, strerror(-ret)) : 0;
}

/* Lays out all entries up to the first case. */
static int lay_out(struct bundle *bundle, const char *images, struct err *err)
{
	struct pack_entry entry;
	size_t at = bundle->at;
	int ret;

	while ((ret = pack__next(&bundle->pack, &at, &entry)) > 0 && entry.tag != PACK_CASE) {
		if (entry.tag == PACK_FILE)
			ret = add_file(bundle, &entry);
		else if (entry.tag == PACK_IMAGE)
			ret = add_image(bundle, images, &entry, err);
		else
			ret = -EBADMSG;
		if (ret)
			break;
		bundle->at = at;
	}
	return min_of(ret, 0);
}

int bundle__open(const char *path, const char *images, const char *work, struct bundle **ret,
		 struct err *err)
{
	struct bundle *bundle = calloc(1, sizeof(*bundle));
	struct err why = {};
	int code;

	if (!bundle)
		return err__set(err, -ENOMEM, "out of memory");
	snprintf(bundle->root, sizeof(bundle->root), "%s/proc", work);
	code = mkdir(bundle->root, 0700) ? -errno : pack__read(path, &bundle->pack, &why);
	if (!code)
		code = lay_out(bundle, images, &why);
	if (code) {
		bundle__close(bundle);
		return err__set(err, code, "%s: %s", path,
				why.text[0] ? why.text : strerror(-code));
	}
	bundle->source.root = bundle->root;
	procfs__use(&bundle->source);
	*ret = bundle;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	remove(path);
	return 0;
}

void bundle__close(struct bundle *bundle)
{
	if (!bundle)
		return;
	procfs__use(NULL);
	for (size_t i = 0; i < bundle->n_images; i++) {
		pack__done(&bundle->images[i].pack);
		close_fd(&bundle->images[i].fd);
	}
	free(bundle->images);
	free(bundle->constants);
	pack__done(&bundle->pack);
	memory__free(bundle->memory);
	nftw(bundle->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(bundle);
}

/* --- missing data --- */

static void __attribute__((format(printf, 2, 3))) lack(struct bundle *bundle, const char *fmt, ...)
{
	va_list args;

	if (bundle->lacks[0] || bundle->forgives)
		return; /* only the first one is reported */
	va_start(args, fmt);
	vsnprintf(bundle->lacks, sizeof(bundle->lacks), fmt, args);
	va_end(args);
}

#define COPIED_BYTES 4096 /* bytes read at once by bpf/stack_copy.bpf.h */

/* Returns true for a read of a stack copy. The copy ends where the recorded part of the stack ends,
 * as elsewhere at the stack's end. */
static bool is_stack_copy(const struct bundle *bundle, uint64_t address, size_t size)
{
	return size == COPIED_BYTES && address > bundle->sp &&
	       address - bundle->sp < STACK_COPY_BYTES;
}

static void on_read(void *ctx, uint64_t address, size_t size, int ret)
{
	if (ret == -ENODATA && !is_stack_copy(ctx, address, size))
		lack(ctx, "%zu bytes of memory at %#" PRIx64, size, address);
}

void bundle__forgive(struct bundle *bundle, bool forgives)
{
	bundle->forgives = forgives;
}

const char *bundle__lacks(const struct bundle *bundle)
{
	return bundle->lacks[0] ? bundle->lacks : NULL;
}

void bundle__check_code(struct bundle *bundle, const char *image, uint64_t vaddr)
{
	struct pack_entry entry;

	for (size_t i = 0; i < bundle->n_images; i++) {
		const char *base = strrchr(bundle->images[i].path, '/') + 1;
		size_t at = 0;

		while (!strcmp(base, image) && pack__next(&bundle->images[i].pack, &at, &entry) > 0)
			if (entry.tag == PACK_REFERENCED && vaddr >= entry.a && vaddr <= entry.b)
				return;
	}
	lack(bundle, "code of %s at %#" PRIx64, image, vaddr);
}

/* Returns the number of bytes from @offset on that one piece contains. */
static uint64_t piece_at(const struct image *image, uint64_t offset)
{
	struct pack_entry entry;
	size_t at = 0;

	while (pack__next(&image->pack, &at, &entry) > 0)
		if (entry.tag == PACK_PIECE && offset >= entry.a && offset - entry.a < entry.size)
			return entry.size - (offset - entry.a);
	return 0;
}

void bundle__check_bytes(struct bundle *bundle, const char *path, uint64_t offset, uint64_t size)
{
	for (size_t i = 0; i < bundle->n_images; i++) {
		uint64_t done = 0, n = 1;

		if (strcmp(bundle->images[i].path, path) != 0)
			continue;
		for (; n && done < size; done += n)
			n = piece_at(&bundle->images[i], offset + done);
		if (done < size)
			lack(bundle, "%" PRIu64 " bytes of %s at offset %#" PRIx64, size, path,
			     offset);
	}
}

/* --- cases --- */

/* Adds bytes that the case shares with a file that is mapped there. */
static int add_same(struct bundle *bundle, const char *maps, uint64_t address, uint64_t size)
{
	uint64_t start, end, offset;
	char path[PACK_NAME_BYTES];
	int ret = -EBADMSG;

	for (const char *line = maps; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %511[^\n]",
			   &start, &end, &offset, path) != 4 ||
		    address < start || address >= end || size > end - address)
			continue;
		for (size_t i = 0; i < bundle->n_images; i++) {
			void *bytes;

			if (strcmp(bundle->images[i].path, path) != 0)
				continue;
			bytes = malloc(size);
			if (!bytes)
				return -ENOMEM;
			if (pread(bundle->images[i].fd, bytes, size, offset + (address - start)) ==
			    (ssize_t)size)
				ret = memory__add_bytes(bundle->memory, address, bytes, size);
			free(bytes);
			return ret;
		}
	}
	return ret;
}

/* Adds code of a file that is mapped readable, and not writable. */
static int add_constant(struct bundle *bundle, const char *path, const struct constant *mapped)
{
	int ret = array__reserve(&bundle->constants, &bundle->cap_constants,
				 bundle->n_constants + 1, sizeof(*bundle->constants));

	for (size_t i = 0; !ret && i < bundle->n_images; i++) {
		if (strcmp(bundle->images[i].path, path) != 0)
			continue;
		bundle->constants[bundle->n_constants] = *mapped;
		bundle->constants[bundle->n_constants++].image = i;
		break;
	}
	return ret;
}

/* Adds the readable mappings. Memory that is unreadable, such as guard pages, is not recorded
 * either. */
static int add_mappings(struct bundle *bundle, const char *maps)
{
	struct constant mapped;
	char perms[8], path[PACK_NAME_BYTES];
	int ret = 0, n;

	for (const char *line = maps; !ret && line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		n = sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %511[^\n]",
			   &mapped.start, &mapped.end, perms, &mapped.offset, path);
		if (n < 3 || perms[0] != 'r')
			continue;
		ret = memory__add_mapping(bundle->memory, mapped.start, mapped.end);
		if (!ret && n == 5 && perms[1] == '-' && perms[2] == 'x')
			ret = add_constant(bundle, path, &mapped);
	}
	return ret;
}

/* Adds @size bytes of @image from @offset on at @address, unless the case has its own. */
static int add_piece(struct bundle *bundle, const struct image *image, uint64_t offset,
		     uint64_t address, uint64_t size)
{
	char *bytes = malloc(size);
	int ret = bytes ? 0 : -ENOMEM;

	if (!ret && pread(image->fd, bytes, size, offset) != (ssize_t)size)
		ret = -EBADMSG;
	if (!ret)
		ret = memory__add_missing(bundle->memory, address, bytes, size);
	free(bytes);
	return ret;
}

/* Adds the pieces of images to the memory of the case, as no process can have changed that code.
 * Called last, as the case's own bytes must not overlap others. The frame descriptions, which
 * follow PACK_REFERENCED, differ from those of the file. */
static int add_images(struct bundle *bundle)
{
	struct pack_entry entry;
	int ret = 0;

	for (size_t i = 0; !ret && i < bundle->n_constants; i++) {
		const struct constant *mapped = &bundle->constants[i];
		const struct image *image = &bundle->images[mapped->image];
		uint64_t last = mapped->offset + (mapped->end - mapped->start);
		size_t at = 0;

		while (!ret && pack__next(&image->pack, &at, &entry) > 0 &&
		       entry.tag != PACK_REFERENCED) {
			uint64_t from = max_of(entry.a, mapped->offset);
			uint64_t to = min_of(entry.a + entry.size, last);

			if (entry.tag == PACK_PIECE && from < to)
				ret = add_piece(bundle, image, from,
						mapped->start + (from - mapped->offset), to - from);
		}
	}
	return ret;
}

/* Returns the offset of @vaddr in the file, or UINT64_MAX. */
static uint64_t image__offset(const struct image *image, uint64_t vaddr)
{
	Elf64_Ehdr head;
	Elf64_Phdr phdr;

	if (pread(image->fd, &head, sizeof(head), 0) != sizeof(head))
		return UINT64_MAX;
	for (size_t i = 0; i < head.e_phnum; i++) {
		if (pread(image->fd, &phdr, sizeof(phdr), head.e_phoff + i * sizeof(phdr)) !=
		    sizeof(phdr))
			break;
		if (phdr.p_type == PT_LOAD && vaddr >= phdr.p_vaddr &&
		    vaddr - phdr.p_vaddr < phdr.p_filesz)
			return phdr.p_offset + (vaddr - phdr.p_vaddr);
	}
	return UINT64_MAX;
}

void bundle__add_call(struct bundle *bundle, const char *image, uint64_t vaddr)
{
	static const unsigned char call[] = { 0x90, 0x90, 0x90, 0xe8, 0, 0, 0, 0 };

	for (size_t i = 0; i < bundle->n_constants; i++) {
		const struct constant *mapped = &bundle->constants[i];
		const struct image *of = &bundle->images[mapped->image];
		uint64_t at;

		if (strcmp(strrchr(of->path, '/') + 1, image) != 0)
			continue;
		at = image__offset(of, vaddr) - sizeof(call) - mapped->offset;
		if (at < mapped->end - mapped->start)
			memory__add_missing(bundle->memory, mapped->start + at, call, sizeof(call));
	}
}

static int take_case(const struct bundle *bundle, const struct pack_entry *entry,
		     struct bundle_case *ret)
{
	const struct arch *arch = arch__of_machine(entry->b ? entry->b : EM_X86_64);

	if (entry->tag != PACK_CASE)
		return -EBADMSG;
	if (!arch || !arch->is_ours)
		return -ENOTSUP;
	if (entry->size != sizeof(ret->thread.regs) + sizeof(ret->thread.fs_base))
		return -EBADMSG;
	*ret = (struct bundle_case) {
		.thread = { .tgid = bundle->pid, .tid = entry->a, .name = "thread" }
	};
	ret->thread.start_stack = procfs__start_stack(bundle->pid);
	snprintf(ret->name, sizeof(ret->name), "%s", entry->name);
	memcpy(ret->thread.regs, entry->bytes, sizeof(ret->thread.regs));
	memcpy(&ret->thread.fs_base, entry->bytes + sizeof(ret->thread.regs),
	       sizeof(ret->thread.fs_base));
	return 0;
}

/* Adds an entry of a case. *@maps is an owned copy of the mappings; NULL until they are read. */
static int add_part(struct bundle *bundle, const struct pack_entry *entry, char **maps)
{
	int ret;

	switch (entry->tag) {
	case PACK_FILE:
		if (!strcmp(entry->name, "maps") && !*maps)
			*maps = strndup((const char *)entry->bytes, entry->size);
		ret = add_file(bundle, entry);
		return ret || strcmp(entry->name, "maps") ? ret
		       : *maps				  ? add_mappings(bundle, *maps)
							  : -ENOMEM;
	case PACK_BYTES:
		return memory__add_bytes(bundle->memory, entry->a, entry->bytes, entry->size);
	case PACK_SAME:
		return *maps && entry->b <= IMAGE_BYTES_MAX
			       ? add_same(bundle, *maps, entry->a, entry->b)
			       : -EBADMSG;
	default:
		return -EBADMSG;
	}
}

int bundle__next(struct bundle *bundle, struct bundle_case *ret, struct err *err)
{
	struct pack_entry entry, first;
	char *maps = NULL;
	size_t at = bundle->at;
	int code = pack__next(&bundle->pack, &at, &entry);

	memory__free(bundle->memory);
	bundle->memory = NULL;
	bundle->lacks[0] = '\0';
	bundle->n_constants = 0;
	if (code <= 0)
		return code;
	first = entry;
	code = take_case(bundle, &entry, ret);
	if (!code)
		code = memory__of_pages(&bundle->memory);
	if (!code)
		bundle->sp = ret->thread.regs[UNWIND_REG_RSP];
	bundle->at = at;
	while (!code && (code = pack__next(&bundle->pack, &at, &entry)) > 0 &&
	       entry.tag != PACK_CASE) {
		code = add_part(bundle, &entry, &maps);
		bundle->at = at;
	}
	free(maps);
	if (code >= 0)
		code = add_images(bundle);
	if (code == -ENOTSUP)
		return err__set(err, code,
				"case %s is of %s process, whose code this build does not unwind",
				first.name, arch__describe(first.b));
	if (code < 0)
		return err__set(err, code, "malformed case %s", ret->name);
	memory__observe(bundle->memory, on_read, bundle);
	bundle->source.memory = bundle->memory;
	ret->memory = bundle->memory;
	return 1;
}
