// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/code_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/fd_limit.h"
#include "core/procfs.h"
#include "core/util.h"

static int open_below(int root_fd, const char *path, uint64_t flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC | O_NOFOLLOW,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/* Takes `fd`. */
static int check_file(int fd, const char *path, uint32_t uid, int64_t begin_s,
		      struct code_file *ret, struct err *err)
{
	struct stat st;
	int rc;

	fd = fd_limit__hold(fd);
	if (fd < 0)
		return err__set(err, fd, "cannot open %s: %s", path,
				fd == -ELOOP ? "it is a link" : strerror(-fd));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		rc = err__set(err, -EPERM, "%s is no regular file", path);
	} else if (st.st_uid && st.st_uid != uid) {
		rc = err__set(err, -EPERM, "%s belongs to user %u, the process to %u", path,
			      st.st_uid, uid);
	} else if (st.st_mtim.tv_sec < begin_s) {
		rc = err__set(err, -ESTALE, "%s is older than the process", path);
	} else {
		*ret = (struct code_file) { .fd = fd, .dev = st.st_dev, .ino = st.st_ino };
		return 0;
	}
	close(fd);
	return rc;
}

int code_file__open(int root_fd, const char *path, uint32_t uid, int64_t begin_s,
		    struct code_file *ret, struct err *err)
{
	int fd = open_below(root_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);

	return check_file(fd, path, uid, begin_s, ret, err);
}

int code_file__open_mapped(uint32_t pid, uint64_t start, uint64_t end, uint32_t uid,
			   int64_t begin_s, struct code_file *ret, struct err *err)
{
	char path[PROCFS_PATH_BYTES];
	int fd;

	snprintf(path, sizeof(path), "%s/%u/map_files/%" PRIx64 "-%" PRIx64, procfs__root(), pid,
		 start, end);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return check_file(fd < 0 ? -errno : fd, path, uid, begin_s, ret, err);
}

void code_file__close(struct code_file *file)
{
	close_fd(&file->fd);
	*file = CODE_FILE_NONE;
}

bool code_file__is_replaced(const struct code_file *file, int root_fd, const char *path)
{
	int fd = open_below(root_fd, path, O_PATH);
	struct stat st;
	bool replaced;

	if (fd < 0)
		return false; /* deleted: what is open stays readable */
	replaced = !fstat(fd, &st) && S_ISREG(st.st_mode) &&
		   (st.st_dev != file->dev || st.st_ino != file->ino);
	close(fd);
	return replaced;
}

size_t code_file__read(const struct code_file *file, uint64_t offset, void *buf, size_t size)
{
	ssize_t n = pread(file->fd, buf, size, offset);

	return n > 0 ? n : 0;
}

/* Whoever writes the file anew may be longer at it than before already. */
static bool prints_match(const struct code_file *file)
{
	uint8_t head[CODE_FILE_PRINT], tail[CODE_FILE_PRINT];
	size_t n = file->n_print;

	return code_file__read(file, 0, head, n) == n &&
	       code_file__read(file, file->done - n, tail, n) == n &&
	       !memcmp(head, file->head, n) && !memcmp(tail, file->tail, n);
}

enum code_file_state code_file__look(struct code_file *file)
{
	int64_t mtime_ns;
	struct stat st;

	if (fstat(file->fd, &st))
		return CODE_FILE_SAME;
	mtime_ns = st.st_mtim.tv_sec * (int64_t)NSEC_PER_SEC + st.st_mtim.tv_nsec;
	if ((uint64_t)st.st_size == file->done && mtime_ns == file->mtime_ns)
		return CODE_FILE_SAME;
	file->mtime_ns = mtime_ns;
	if ((uint64_t)st.st_size < file->done || (file->done && !file->n_print) ||
	    !prints_match(file)) {
		file->done = file->n_print = 0;
		return CODE_FILE_REWRITTEN;
	}
	return (uint64_t)st.st_size > file->done && file->done < CODE_FILE_MAX ? CODE_FILE_GROWN
									       : CODE_FILE_SAME;
}

void code_file__take(struct code_file *file, uint64_t done)
{
	size_t n = min_of(done, (uint64_t)CODE_FILE_PRINT);

	if (code_file__read(file, 0, file->head, n) != n ||
	    code_file__read(file, done - n, file->tail, n) != n)
		n = 0; /* it shrinks as we look at it: that will be seen */
	file->n_print = n;
	file->done = done;
}
