// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/debugfile.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define DEBUG_DIR "/usr/lib/debug"

struct link {
	const char *name; /* borrowed from the file; NULL: none */
	GElf_Word crc;
};

static bool belongs(const struct elf_file *file, const struct elf_file *debug,
		    const struct link *link)
{
	size_t size;
	char *base;

	if (file->build_id_len && debug->build_id_len)
		return file->build_id_len == debug->build_id_len &&
		       !memcmp(file->build_id, debug->build_id, file->build_id_len);
	if (!link->name)
		return false;
	base = elf_rawfile(debug->elf, &size);
	return base && crc32_z(0, (Bytef *)base, size) == link->crc;
}

__attribute__((format(printf, 4, 5))) static int open_candidate(const struct elf_file *file,
								const struct link *link,
								struct elf_file **ret,
								const char *fmt, ...)
{
	struct elf_file *debug = NULL;
	char *path = NULL;
	va_list args;
	int fd, rc;

	va_start(args, fmt);
	rc = vasprintf(&path, fmt, args);
	va_end(args);
	if (rc < 0)
		return -ENOMEM;
	/* Not to wait for the other end should it be a pipe. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	rc = fd < 0 ? -ENOENT : elf_file__open(fd, path, &debug, NULL);
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

static int open_by_build_id(const struct elf_file *file, const char *root, struct elf_file **ret)
{
	char hex[2 * ELF_BUILD_ID_MAX + 1] = "";

	if (file->build_id_len < 2)
		return -ENOENT;
	for (size_t i = 0; i < file->build_id_len; i++)
		snprintf(hex + 2 * i, 3, "%02x", file->build_id[i]);
	return open_candidate(file, &(struct link) { 0 }, ret,
			      "%s" DEBUG_DIR "/.build-id/%.2s/%s.debug", root, hex, hex + 2);
}

static int open_by_link(const struct elf_file *file, const char *root, const struct link *link,
			struct elf_file **ret)
{
	const char *slash = file->path[0] == '/' ? strrchr(file->path, '/') : NULL;
	int dir_len = slash ? slash - file->path : 0;
	int rc;

	/* The name comes from the file: it must not lead elsewhere. */
	if (!slash || !link->name || !link->name[0] || strchr(link->name, '/'))
		return -ENOENT;
	rc = open_candidate(file, link, ret, "%s%.*s/%s", root, dir_len, file->path, link->name);
	if (rc == -ENOENT)
		rc = open_candidate(file, link, ret, "%s%.*s/.debug/%s", root, dir_len, file->path,
				    link->name);
	if (rc == -ENOENT)
		rc = open_candidate(file, link, ret, "%s" DEBUG_DIR "%.*s/%s", root, dir_len,
				    file->path, link->name);
	return rc;
}

int debugfile__open(const struct elf_file *file, const char *root, bool stays,
		    struct elf_file **ret)
{
	const char *roots[] = { root, "" };
	struct link link = { 0 };
	int rc = -ENOENT;

	link.name = dwelf_elf_gnu_debuglink(file->elf, &link.crc);
	for (size_t i = 0; i < (root[0] && !stays ? 2 : 1) && rc == -ENOENT; i++) {
		rc = open_by_build_id(file, roots[i], ret);
		if (rc == -ENOENT)
			rc = open_by_link(file, roots[i], &link, ret);
	}
	return rc;
}
