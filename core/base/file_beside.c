// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/file_beside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/fnv.h"
#include "core/base/util.h"

/* A name made of the file's own and a suffix could be too long. */
#define NAME ".braid-XXXXXX"

#define FD_PATH_BYTES 32
#define TRIES	      8 /* other processes may replace the same file */

/* Returns the length of the directory in @path, with its slash. */
static int dir_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 - path : 0;
}

static void fd_path(int fd, char ret[FD_PATH_BYTES])
{
	snprintf(ret, FD_PATH_BYTES, "/proc/self/fd/%d", fd);
}

/* Returns a file without a name in the directory of @path. Returns -1 if the file system has no
 * such files or linkat() could not name it later. */
static int create_nameless(const char *path)
{
	char *dir, own[FD_PATH_BYTES];
	int fd;

	if (asprintf(&dir, "%.*s.", dir_length(path), path) < 0)
		return -1;
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	free(dir);
	fd_path(fd, own);
	if (fd >= 0 && access(own, F_OK)) /* no /proc */
		close_fd(&fd);
	return fd;
}

int file_beside__create(const char *path, struct file_beside *ret)
{
	int code;

	*ret = (struct file_beside) { .fd = create_nameless(path) };
	if (ret->fd >= 0)
		return 0;
	if (asprintf(&ret->name, "%.*s" NAME, dir_length(path), path) < 0) {
		ret->name = NULL;
		return -ENOMEM;
	}
	ret->fd = mkostemp(ret->name, O_CLOEXEC);
	if (ret->fd >= 0)
		return 0;
	code = -errno;
	free(ret->name);
	ret->name = NULL;
	return code;
}

static int give_name(const struct file_beside *file, const char *path)
{
	char own[FD_PATH_BYTES];

	fd_path(file->fd, own);
	return linkat(AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

static void forget_name(struct file_beside *file)
{
	free(file->name);
	file->name = NULL;
}

int file_beside__place(struct file_beside *file, const char *path)
{
	if (!file->name)
		return give_name(file, path);
	/* EINVAL: the file system does not support the flag. */
	if (renameat2(AT_FDCWD, file->name, AT_FDCWD, path, RENAME_NOREPLACE) &&
	    (errno != EINVAL || rename(file->name, path)))
		return -errno;
	forget_name(file);
	return 0;
}

/* Returns the name that a file for @path has between its creation and its move to @path. Only files
 * for @path have that name. A @salt other than 0 is for the case that a foreign file has it. NULL:
 * out of memory. */
static char *passing_name(const char *path, uint64_t salt)
{
	int dir = dir_length(path);
	uint64_t hash = fnv__add(FNV_BEGIN ^ salt, path + dir, strlen(path + dir));
	char *ret;

	return asprintf(&ret, "%.*s.braid-%016llx", dir, path, (unsigned long long)hash) < 0 ? NULL
											     : ret;
}

/* Moves the file @name to @path if a writer that was killed left it there. Such a file is
 * complete. */
static bool finish_left(const char *name, const char *path)
{
	struct stat left, there;

	return !lstat(name, &left) && S_ISREG(left.st_mode) && left.st_nlink == 1 &&
	       (left.st_uid == geteuid() ||
		(!lstat(path, &there) && left.st_uid == there.st_uid)) &&
	       !rename(name, path);
}

/* Gives the file a temporary name and renames it to @path: linkat() cannot replace a file. */
static int replace_by_name(const struct file_beside *file, const char *path)
{
	uint64_t salt = 0;
	int ret = -EEXIST;
	char *passing;

	for (int i = 0; ret == -EEXIST && i < TRIES; i++) {
		passing = passing_name(path, salt);
		if (!passing)
			return -ENOMEM;
		ret = give_name(file, passing);
		if (ret == -EEXIST && !finish_left(passing, path) &&
		    getrandom(&salt, sizeof(salt), 0) < 0)
			ret = -errno;
		/* ENOENT: another process moved the file to its place. */
		if (!ret && rename(passing, path) && errno != ENOENT) {
			ret = -errno;
			unlink(passing);
		}
		free(passing);
	}
	return ret;
}

int file_beside__replace(struct file_beside *file, const char *path)
{
	int ret;

	if (!file->name) {
		ret = give_name(file, path);
		return ret == -EEXIST ? replace_by_name(file, path) : ret;
	}
	if (rename(file->name, path))
		return -errno;
	forget_name(file);
	return 0;
}

void file_beside__done(struct file_beside *file)
{
	if (file->name)
		unlink(file->name);
	forget_name(file);
	close_fd(&file->fd);
}
