// SPDX-License-Identifier: GPL-2.0-or-later
/* Where a file's separate debug information is, in the order in which GDB looks (its manual,
 * "Debugging Information in Separate Files"): by build-id below /usr/lib/debug/.build-id, then by
 * the name in .gnu_debuglink beside the file, in .debug beside it, and below /usr/lib/debug at its
 * path. First in the target's root, since a container has its own packages; then in our own, where
 * the user may have installed what the container lacks.
 *
 * All of these names come from the target. A file found by one is opened as every file of a target
 * is (core/base/target_file.h), and counts only if it says that it belongs to this one: the same
 * build-id, or else the checksum that the link asks for. */
#include "core/elf/debugfile.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/base/target_file.h"

#define DEBUG_DIR "/usr/lib/debug"

struct link {
	const char *name; /* borrowed from the file; NULL: none */
	GElf_Word crc;
	const void *build_id; /* that the other file must have; NULL: the file's own, or the crc */
	size_t build_id_len;
};

#define CRC_BYTES_MAX (1LL << 30)

/* By parts: the file is hostile, and need not be small. */
static bool has_crc(int fd, GElf_Word wanted)
{
	Bytef block[16 << 10];
	uLong crc = 0;
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, block, sizeof(block), at)) > 0 && at < CRC_BYTES_MAX) {
		crc = crc32_z(crc, block, n);
		at += n;
	}
	return !n && crc == wanted;
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
	return link->name && has_crc(debug->fd, link->crc);
}

/* An image is shared by all processes that have it, some of which may see debug files that others
 * have put there: these may be of whom the image is of, or of root. On a file system that a user
 * may serve, an owner means something for files of the same only. */
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
	rc = fd < 0 ? -ENOENT : elf_file__open(fd, path, &debug, NULL);
	target_file__done(&found);
	free(path);
	if (rc)
		return rc == -ENOMEM ? rc : -ENOENT;
	if (!belongs(file, debug, link)) {
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

	/* The name comes from the file: it must not lead elsewhere. */
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

/* Its name may have directories: it stays below the root. */
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

int debugfile__open(const struct elf_file *file, const char *root, bool stays,
		    struct elf_file **ret)
{
	struct link link = { 0 };

	link.name = dwelf_elf_gnu_debuglink(file->elf, &link.crc);
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
