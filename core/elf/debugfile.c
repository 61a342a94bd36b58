// SPDX-License-Identifier: GPL-2.0-or-later
/* Finds a file's separate debug information, in GDB's order (its manual, "Debugging Information in
 * Separate Files"). The first place is the build-id below /usr/lib/debug/.build-id. Then follow the
 * name in .gnu_debuglink beside the file, in .debug beside it, and below /usr/lib/debug at its
 * path. The target's root is searched first, since a container has its own packages. Then follows
 * braid's own root, where the user may have installed files that the container lacks.
 *
 * All of these names are from the target. A candidate is opened as every file of a target is
 * (core/files/target_file.h). It counts only if it belongs to the file: by an equal build-id, or
 * else by the checksum in the link. */
#include "core/elf/debugfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/files/target_file.h"

#define DEBUG_DIR "/usr/lib/debug"

struct link {
	const char *name; /* borrowed from the file; NULL: none */
	GElf_Word crc;
	const void *build_id; /* build-id of the other file; NULL: the file's own, or the crc */
	size_t build_id_len;
	const char *dir; /* directory of a .dwo file or a package, which need not name @file */
	bool is_split;
};

/* Cached checksums of candidates, so that a file with many names is read once. */
#define SUMS 64

struct sum {
	uint64_t dev, ino, size;
	int64_t mtime_ns, ctime_ns;
	uint64_t crc, known;
};
static struct sum sums[SUMS];

static int64_t time_of(const struct timespec *time)
{
	return time->tv_sec * (int64_t)NSEC_PER_SEC + time->tv_nsec;
}

static int compute_crc(const struct elf_file *file, uint64_t *ret)
{
	Bytef *block = malloc(QUOTA_BLOCK);
	int rc = block ? 0 : -ENOMEM;
	uLong crc = 0;
	size_t n;

	for (uint64_t at = 0; at < file->size && !rc; at += n) {
		n = min_of(file->size - at, (uint64_t)QUOTA_BLOCK);
		rc = quota__charge(file->account, QUOTA_HASHED, n);
		if (!rc)
			rc = elf_file__read_at(file, at, block, n);
		if (!rc)
			crc = crc32_z(crc, block, n);
	}
	free(block);
	*ret = crc;
	return rc;
}

/* Files with debug information have no holes worth mentioning. The claimed size of a larger file
 * that is mostly hole is not credible. */
#define DENSE_BYTES (16ULL << 20)

static bool has_crc(const struct elf_file *file, GElf_Word expected)
{
	struct sum key = { .known = 1 }, *sum;
	struct stat st;

	if (file->fd < 0 || fstat(file->fd, &st))
		return false;
	if (file->size > DENSE_BYTES && (uint64_t)st.st_blocks * 512 < file->size / 2)
		return quota__refuse(file->account) == 0;
	key.dev = st.st_dev;
	key.ino = st.st_ino;
	key.size = st.st_size;
	key.mtime_ns = time_of(&st.st_mtim);
	key.ctime_ns = time_of(&st.st_ctim);
	sum = &sums[(key.ino ^ key.dev) % SUMS];
	key.crc = sum->crc;
	if (memcmp(sum, &key, sizeof(key)) != 0) {
		if (compute_crc(file, &key.crc))
			return false;
		*sum = key;
	}
	return sum->crc == expected;
}

static bool belongs(const struct elf_file *file, const struct elf_file *debug,
		    const struct link *link)
{
	if (link->build_id)
		return debug->build_id_len == link->build_id_len &&
		       !memcmp(debug->build_id, link->build_id, link->build_id_len);
	if (file->build_id_len && debug->build_id_len)
		return file->build_id_len == debug->build_id_len &&
		       !memcmp(file->build_id, debug->build_id, file->build_id_len);
	return link->name && has_crc(debug, link->crc);
}

/* Returns true if the owner of @found is root or the owner of @file. All processes with an image
 * share it, and some of them may see debug files that other users created. If a user may serve the
 * file system of @found, its owner is meaningful only if @file comes from such a file system, too.
 * A memory image has no owner: any file is trusted that no user may serve. */
static bool is_trusted(const struct elf_file *file, const struct target_file *found)
{
	struct stat st;

	if (file->fd < 0)
		return !found->may_hang;
	return !fstat(file->fd, &st) && (found->uid == 0 || found->uid == st.st_uid) &&
	       (!found->may_hang || target_file__is_copy(file->fd));
}

__attribute__((format(printf, 5, 6))) static int open_candidate(const struct elf_file *file,
								int root_fd,
								const struct link *link,
								struct elf_file **ret,
								const char *fmt, ...)
{
	struct target_file found = TARGET_FILE_NONE;
	struct elf_file *debug = NULL;
	char *path = NULL;
	va_list args;
	int fd, rc;

	va_start(args, fmt);
	rc = vasprintf(&path, fmt, args);
	va_end(args);
	if (rc < 0)
		return -ENOMEM;
	rc = target_file__find(root_fd, path, true, &found);
	if (!rc && !is_trusted(file, &found))
		rc = -ENOENT;
	fd = rc ? rc : target_file__open(&found);
	if (fd < 0)
		rc = fd;
	else if (link->is_split)
		rc = elf_file__open_any(fd, path, &debug, NULL);
	else
		rc = elf_file__open(fd, path, &debug, NULL);
	target_file__done(&found);
	free(path);
	if (rc)
		return rc == -ENOMEM || rc == -EINTR ? rc : -ENOENT;
	if (!link->is_split && !belongs(file, debug, link)) {
		elf_file__free(debug);
		return -ENOENT;
	}
	*ret = debug;
	return 0;
}

static int open_by_build_id(const struct elf_file *file, int root, const uint8_t *id, size_t len,
			    struct elf_file **ret)
{
	char hex[2 * ELF_BUILD_ID_MAX + 1] = "";

	if (len < 2 || len > ELF_BUILD_ID_MAX)
		return -ENOENT;
	for (size_t i = 0; i < len; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	return open_candidate(file, root, &(struct link) { .build_id = id, .build_id_len = len },
			      ret, DEBUG_DIR "/.build-id/%.2s/%s.debug", hex, hex + 2);
}

static int open_by_link(const struct elf_file *file, int root, const struct link *link,
			struct elf_file **ret)
{
	const char *slash = file->path[0] == '/' ? strrchr(file->path, '/') : NULL;
	int dir_len = slash ? slash - file->path : 0;
	int rc;

	/* The name is from the file and must not lead elsewhere. */
	if (!slash || !link->name || !link->name[0] || strchr(link->name, '/'))
		return -ENOENT;
	rc = open_candidate(file, root, link, ret, "%.*s/%s", dir_len, file->path, link->name);
	if (rc == -ENOENT)
		rc = open_candidate(file, root, link, ret, "%.*s/.debug/%s", dir_len, file->path,
				    link->name);
	if (rc == -ENOENT)
		rc = open_candidate(file, root, link, ret, DEBUG_DIR "%.*s/%s", dir_len, file->path,
				    link->name);
	return rc;
}

static int open_linked(const struct elf_file *file, int root, const struct link *link,
		       struct elf_file **ret)
{
	int rc = open_by_build_id(file, root, file->build_id, file->build_id_len, ret);

	return rc == -ENOENT ? open_by_link(file, root, link, ret) : rc;
}

/* Opens a shared file. Its name may contain directories, and stays below the root. */
static int open_shared(const struct elf_file *file, int root, const struct link *link,
		       struct elf_file **ret)
{
	const char *slash = file->path[0] == '/' ? strrchr(file->path, '/') : NULL;
	int dir_len = slash ? slash - file->path : 0;
	int rc = open_by_build_id(file, root, link->build_id, link->build_id_len, ret);

	if (rc == -ENOENT && link->name[0] == '/')
		return open_candidate(file, root, link, ret, "%s", link->name);
	if (rc == -ENOENT && slash)
		rc = open_candidate(file, root, link, ret, "%.*s/%s", dir_len, file->path,
				    link->name);
	return rc;
}

typedef int (*open_fn)(const struct elf_file *file, int root, const struct link *link,
		       struct elf_file **ret);

static int open_below_roots(const struct elf_file *file, const char *root, bool stays,
			    const struct link *link, open_fn open_in, struct elf_file **ret)
{
	const char *roots[] = { root[0] ? root : "/", "/" };
	int rc = -ENOENT;

	for (size_t i = 0; i < (root[0] && !stays ? 2 : 1) && rc == -ENOENT; i++) {
		int root_fd = open(roots[i], O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (root_fd < 0)
			continue;
		rc = open_in(file, root_fd, link, ret);
		close(root_fd);
	}
	return rc;
}

/* Reads the link: the name, padded to four bytes, and the checksum. */
static void read_link(const struct elf_file *file, struct link *ret)
{
	Elf_Data *data = elf_file__section(file, ".gnu_debuglink", NULL);
	const char *end = data ? memchr(data->d_buf, '\0', data->d_size) : NULL;
	size_t at = end ? ((end - (char *)data->d_buf) + 4) & ~(size_t)3 : 0;

	if (!end || !fits_in(at, sizeof(ret->crc), data->d_size))
		return;
	memcpy(&ret->crc, (char *)data->d_buf + at, sizeof(ret->crc));
	ret->name = data->d_buf;
}

int debugfile__open(const struct elf_file *file, const char *root, bool stays,
		    struct elf_file **ret)
{
	struct link link = { 0 };

	read_link(file, &link);
	return open_below_roots(file, root, stays, &link, open_linked, ret);
}

static bool read_alt_link(const struct elf_file *file, struct link *ret)
{
	Elf_Data *data = elf_file__section(file, ".gnu_debugaltlink", NULL);
	const char *end = data ? memchr(data->d_buf, '\0', data->d_size) : NULL;

	if (!end)
		return false;
	ret->name = data->d_buf;
	ret->build_id = end + 1;
	ret->build_id_len = data->d_size - (end + 1 - ret->name);
	return true;
}

const void *debugfile__alt_build_id(const struct elf_file *file, size_t *ret_len)
{
	struct link link;

	if (!read_alt_link(file, &link))
		return NULL;
	*ret_len = link.build_id_len;
	return link.build_id;
}

int debugfile__open_alt(const struct elf_file *file, const char *root, bool stays,
			struct elf_file **ret)
{
	struct link link = { 0 };

	if (!read_alt_link(file, &link))
		return -ENOENT;
	return open_below_roots(file, root, stays, &link, open_shared, ret);
}

static int open_split(const struct elf_file *file, int root, const struct link *link,
		      struct elf_file **ret)
{
	const char *slash = file->path[0] == '/' ? strrchr(file->path, '/') : NULL;
	const char *base = strrchr(link->name, '/');
	int dir_len = slash ? slash - file->path : 0, rc = -ENOENT;

	if (link->name[0] == '/')
		rc = open_candidate(file, root, link, ret, "%s", link->name);
	else if (link->dir[0] == '/')
		rc = open_candidate(file, root, link, ret, "%s/%s", link->dir, link->name);
	if (rc == -ENOENT && slash && link->name[0] != '/')
		rc = open_candidate(file, root, link, ret, "%.*s/%s", dir_len, file->path,
				    link->name);
	if (rc == -ENOENT && slash && base)
		rc = open_candidate(file, root, link, ret, "%.*s%s", dir_len, file->path, base);
	return rc;
}

static int open_package(const struct elf_file *file, int root, const struct link *link,
			struct elf_file **ret)
{
	int rc;

	if (file->path[0] != '/')
		return -ENOENT;
	rc = open_candidate(file, root, link, ret, "%s.dwp", file->path);
	if (rc == -ENOENT)
		rc = open_candidate(file, root, link, ret, DEBUG_DIR "%s.dwp", file->path);
	return rc;
}

int debugfile__open_split(const struct elf_file *file, const char *root, bool stays,
			  const char *dir, const char *name, struct elf_file **ret)
{
	struct link link = { .name = name, .dir = dir, .is_split = true };

	return open_below_roots(file, root, stays, &link, name ? open_split : open_package, ret);
}
