// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/files/target_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/files/target_helper.h"

#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x00004000U /* Linux 6.8, include/uapi/linux/stat.h */
#endif

#define RESOLVE_BELOW (RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS)

/* Places are hashed. A collision evicts an entry, which costs one more request to the helper. */
#define PLACES	       512
#define HUNG_NS	       NSEC_PER_SEC /* after the first timeout; doubled by each further timeout */
#define HUNG_SHIFT_MAX 6

static uint64_t local_mounts[PLACES];
static struct {
	uint64_t place, until_ns;
	unsigned times; /* consecutive timeouts */
} hung[PLACES];

static uint64_t mix(uint64_t seed, uint64_t value)
{
	return (seed ^ value) * 0x9e3779b97f4a7c15ULL + (seed >> 29);
}

static bool is_hung(uint64_t place)
{
	return hung[place % PLACES].place == place && now_ns() < hung[place % PLACES].until_ns;
}

static void note_hung(uint64_t place)
{
	unsigned times = hung[place % PLACES].place == place ? hung[place % PLACES].times : 0;
	unsigned shift = min_of(times, (unsigned)HUNG_SHIFT_MAX);

	hung[place % PLACES].place = place;
	hung[place % PLACES].until_ns = now_ns() + (HUNG_NS << shift);
	hung[place % PLACES].times = times + 1;
}

/* Sends a request to the helper, unless the place is within its pause after a timeout. */
static int ask(const struct target_request *request, int fd, uint64_t place,
	       struct target_answer *ret, int *ret_fd)
{
	int code;

	*ret_fd = -1;
	if (place && is_hung(place))
		return -ETIMEDOUT;
	code = target_helper__ask(request, fd, ret, ret_fd);
	if (code == -ETIMEDOUT && place)
		note_hung(place);
	else if (place && hung[place % PLACES].place == place)
		hung[place % PLACES].place = 0;
	return code;
}

/* Returns the cached attributes of a file, without a request to its file system. */
static int look(int fd, struct statx *ret)
{
	memset(ret, 0, sizeof(*ret));
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		     STATX_BASIC_STATS | STATX_MNT_ID | STATX_MNT_ID_UNIQUE, ret)
		       ? -errno
		       : 0;
}

/* Returns a number that identifies the mount, now and later, or 0. Mount ids are reused unless they
 * are unique ones, and so are the numbers of anonymous devices. */
static uint64_t mount_of(const struct statx *info)
{
	if (info->stx_mask & STATX_MNT_ID_UNIQUE)
		return mix(1, info->stx_mnt_id);
	return info->stx_dev_major ? mix(2, makedev(info->stx_dev_major, info->stx_dev_minor)) : 0;
}

static void take(const struct statx *info, struct target_file *file)
{
	file->uid = info->stx_uid;
	file->dev = makedev(info->stx_dev_major, info->stx_dev_minor);
	file->ino = info->stx_ino;
	file->size = info->stx_size;
	file->mtime_ns = info->stx_mtime.tv_sec * (int64_t)NSEC_PER_SEC + info->stx_mtime.tv_nsec;
	file->ctime_ns = info->stx_ctime.tv_sec * (int64_t)NSEC_PER_SEC + info->stx_ctime.tv_nsec;
}

/* Takes ownership of @fd, an O_PATH descriptor. */
static int examine(int fd, struct target_file *ret)
{
	struct target_request request = { .op = TARGET_HELPER_DESCRIBE };
	struct target_answer answer;
	struct target_file file = { .fd = fd };
	struct statx info;
	uint64_t mount;
	int code = look(fd, &info), none;

	if (!code && !S_ISREG(info.stx_mode))
		code = S_ISLNK(info.stx_mode) ? -ELOOP : -EINVAL;
	if (code)
		goto out;
	take(&info, &file);
	mount = mount_of(&info);
	if (!mount || local_mounts[mount % PLACES] != mount) {
		code = ask(&request, fd, mount ? mount : mix(3, file.dev), &answer, &none);
		if (code)
			goto out;
		file.may_hang = answer.may_hang;
		if (!file.may_hang)
			local_mounts[mount % PLACES] = mount;
		else
			take(&answer.info, &file);
	}
	if (file.may_hang)
		file.mount = info.stx_mnt_id;
	*ret = file;
	return 0;
out:
	close(fd);
	return code;
}

/* --- look-up --- */

/* Returns a number for the directory of @path below the root: the place where a look-up may
 * hang. */
static uint64_t place_of(int root_fd, const char *path)
{
	const char *slash = strrchr(path, '/');
	uint64_t place = 4;
	struct statx info;

	if (!look(root_fd, &info))
		place = mix(mix(place, info.stx_mnt_id), info.stx_ino);
	for (; slash && path < slash; path++)
		place = mix(place, *path);
	return place;
}

int target_file__find(int root_fd, const char *path, bool follow, struct target_file *ret)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW),
				.resolve = RESOLVE_BELOW | RESOLVE_CACHED };
	struct target_request request = { .op = TARGET_HELPER_FIND, .open_flags = how.flags };
	struct target_answer answer;
	int fd, code = 0;

	*ret = TARGET_FILE_NONE;
	if (strlen(path) >= sizeof(request.path))
		return -ENAMETOOLONG;
	/* The kernel's cache may have the path: no request to a file system is needed. */
	fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	if (fd < 0 && errno != EAGAIN && errno != EINVAL)
		return -errno;
	if (fd < 0) {
		strcpy(request.path, path);
		code = ask(&request, root_fd, place_of(root_fd, path), &answer, &fd);
	}
	if (code || fd < 0)
		return code ? code : -EIO;
	return examine(fd, ret);
}

int target_file__find_link(const char *path, struct target_file *ret)
{
	int fd = open(path, O_PATH | O_CLOEXEC);

	*ret = TARGET_FILE_NONE;
	return fd < 0 ? -errno : examine(fd, ret);
}

/* --- reading --- */

int target_file__open(const struct target_file *file)
{
	struct target_request request = { .op = TARGET_HELPER_COPY };
	struct target_answer answer;
	char link[64];
	int fd, code;

	if (file->may_hang) {
		code = ask(&request, file->fd, mix(5, file->mount), &answer, &fd);
		return code ? code : fd;
	}
	/* Without O_NONBLOCK the open would wait until a holder of a lease on the file releases
	 * it. */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", file->fd);
	fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

void target_file__done(struct target_file *file)
{
	close_fd(&file->fd);
}

bool target_file__is_copy(int fd)
{
	static const char copy[] = "/memfd:" TARGET_COPY_NAME " (deleted)";
	char link[64], name[sizeof(copy)];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, name, sizeof(name));
	return n == sizeof(copy) - 1 && !memcmp(name, copy, n);
}
