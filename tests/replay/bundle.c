// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/replay/bundle.h"

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

#include "core/base/util.h"
#include "core/target/procfs.h"
#include "tests/replay/pack.h"

#define IMAGE_BYTES_MAX (1ULL << 30)

struct image {
	char path[PACK_NAME_BYTES];
	struct pack pack;
	int fd; /* laid out */
};

struct bundle {
	struct pack pack;
	size_t at;
	uint32_t pid;
	char root[128]; /* stands in for /proc */
	struct procfs_source source;
	struct image *images;
	size_t n_images, cap_images;
	struct memory *memory; /* of the case */
	char lacks[PACK_NAME_BYTES + 100];
	bool forgives;
};

/* --- laying out --- */

static bool is_safe(const char *path)
{
	return path[0] && path[0] != '/' && !strstr(path, "..") && strlen(path) < PACK_NAME_BYTES;
}

/* A new file below the target's directory, with the directories that lead to it. */
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
	/* What is laid out belongs to whoever replays it, as the files of a target do to it. */
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

/* All up to the first case. */
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
	pack__done(&bundle->pack);
	memory__free(bundle->memory);
	nftw(bundle->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(bundle);
}

/* --- what is lacking --- */

static void __attribute__((format(printf, 2, 3))) lack(struct bundle *bundle, const char *fmt, ...)
{
	va_list args;

	if (bundle->lacks[0] || bundle->forgives)
		return; /* the first is the one to look at */
	va_start(args, fmt);
	vsnprintf(bundle->lacks, sizeof(bundle->lacks), fmt, args);
	va_end(args);
}

static void on_read(void *ctx, uint64_t address, size_t size, int ret)
{
	if (ret == -ENODATA)
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
			if (entry.tag == PACK_KNOWN && vaddr >= entry.a && vaddr <= entry.b)
				return;
	}
	lack(bundle, "code of %s at %#" PRIx64, image, vaddr);
}

/* How many of the bytes at `offset` one piece has. */
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

/* Bytes that the case shares with a file that is mapped there. */
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

/* What cannot be read, like guard pages, could not be recorded either. */
static int add_mappings(struct bundle *bundle, const char *maps)
{
	uint64_t start, end;
	char perms[8];
	int ret = 0;

	for (const char *line = maps; !ret && line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &start, &end, perms) == 3 &&
		    perms[0] == 'r')
			ret = memory__add_mapping(bundle->memory, start, end);
	}
	return ret;
}

static int take_case(const struct bundle *bundle, const struct pack_entry *entry,
		     struct bundle_case *ret)
{
	if (entry->tag != PACK_CASE ||
	    entry->size != sizeof(ret->thread.regs) + sizeof(ret->thread.fs_base))
		return -EBADMSG;
	*ret = (struct bundle_case) {
		.thread = { .tgid = bundle->pid, .tid = entry->a, .name = "thread" }
	};
	snprintf(ret->name, sizeof(ret->name), "%s", entry->name);
	memcpy(ret->thread.regs, entry->bytes, sizeof(ret->thread.regs));
	memcpy(&ret->thread.fs_base, entry->bytes + sizeof(ret->thread.regs),
	       sizeof(ret->thread.fs_base));
	return 0;
}

/* `maps`: its owned copy of the mappings, NULL before they came. */
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
	struct pack_entry entry;
	char *maps = NULL;
	size_t at = bundle->at;
	int code = pack__next(&bundle->pack, &at, &entry);

	memory__free(bundle->memory);
	bundle->memory = NULL;
	bundle->lacks[0] = '\0';
	if (code <= 0)
		return code;
	code = take_case(bundle, &entry, ret);
	if (!code)
		code = memory__of_pages(&bundle->memory);
	bundle->at = at;
	while (!code && (code = pack__next(&bundle->pack, &at, &entry)) > 0 &&
	       entry.tag != PACK_CASE) {
		code = add_part(bundle, &entry, &maps);
		bundle->at = at;
	}
	free(maps);
	if (code < 0)
		return err__set(err, code, "malformed case %s", ret->name);
	memory__observe(bundle->memory, on_read, bundle);
	bundle->source.memory = bundle->memory;
	ret->memory = bundle->memory;
	return 1;
}
