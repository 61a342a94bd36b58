// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/jit_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/fd_limit.h"
#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/files/target_file.h"
#include "core/target/procfs.h"

/* Opens the file @found if @code is 0, after checks of its owner, time and size. Releases @found.
 */
static int open_found(int code, struct target_file *found, const char *path, uint32_t uid,
		      int64_t begin_s, struct jit_file *ret, struct err *err)
{
	int fd = -1;

	if (code == -EINVAL)
		code = err__set(err, -EPERM, "%s is not a regular file", path);
	else if (code)
		code = err__set(err, code, "cannot open %s: %s", path,
				code == -ELOOP ? "it is a link" : strerror(-code));
	else if (found->uid && found->uid != uid)
		code = err__set(err, -EPERM, "%s belongs to user %u, the process to %u", path,
				found->uid, uid);
	else if (found->mtime_ns / (int64_t)NSEC_PER_SEC < begin_s)
		code = err__set(err, -ESTALE,
				"cannot use %s: it is older than the process, so another process "
				"wrote it. If the clock was set forward since, touch the file",
				path);
	else if (found->may_hang && found->size > JIT_FILE_COPY_MAX)
		code = err__set(err, -EFBIG, "file too large to read in full: %s", path);
	if (!code) {
		fd = fd_limit__hold(target_file__open(found));
		code = fd < 0 ? err__set(err, fd, "cannot read %s: %s", path, strerror(-fd)) : 0;
	}
	if (!code)
		*ret = (struct jit_file) { .fd = fd,
					   .dev = found->dev,
					   .ino = found->ino,
					   .copied_ns = found->may_hang ? found->mtime_ns : 0 };
	target_file__done(found);
	return code;
}

int jit_file__open(int root_fd, const char *path, uint32_t uid, int64_t begin_s,
		   struct jit_file *ret, struct err *err)
{
	struct target_file found;
	int code = target_file__find(root_fd, path, false, &found);

	return open_found(code, &found, path, uid, begin_s, ret, err);
}

int jit_file__open_mapped(uint32_t pid, uint64_t start, uint64_t end, uint32_t uid, int64_t begin_s,
			  struct jit_file *ret, struct err *err)
{
	char path[PROCFS_PATH_BYTES];
	struct target_file found;
	int code;

	snprintf(path, sizeof(path), "%s/%u/map_files/%" PRIx64 "-%" PRIx64, procfs__root(), pid,
		 start, end);
	code = procfs__find_map_file(pid, start, end, &found);
	return open_found(code, &found, path, uid, begin_s, ret, err);
}

void jit_file__close(struct jit_file *file)
{
	close_fd(&file->fd);
	*file = JIT_FILE_NONE;
}

bool jit_file__is_replaced(const struct jit_file *file, int root_fd, const char *path)
{
	struct target_file found;
	bool replaced;

	if (target_file__find(root_fd, path, false, &found))
		return false; /* deleted: the open file stays readable */
	replaced = found.dev != file->dev || found.ino != file->ino ||
		   (file->copied_ns && found.mtime_ns != file->copied_ns);
	target_file__done(&found);
	return replaced;
}

static size_t read_at(const struct jit_file *file, uint64_t offset, void *buf, size_t size)
{
	ssize_t n = pread(file->fd, buf, size, offset);

	return n > 0 ? n : 0;
}

size_t jit_file__read(struct jit_file *file, uint64_t offset, void *buf, size_t size)
{
	file->refused = quota__charge(file->account, QUOTA_READ, size);
	return file->refused ? 0 : read_at(file, offset, buf, size);
}

/* Returns true if the file still begins with the processed bytes. The size is not sufficient: a
 * rewritten file may already be longer than before. */
static bool prints_match(const struct jit_file *file)
{
	uint8_t head[JIT_FILE_PRINT], tail[JIT_FILE_PRINT];
	size_t n = file->n_print;

	return read_at(file, 0, head, n) == n && read_at(file, file->done - n, tail, n) == n &&
	       !memcmp(head, file->head, n) && !memcmp(tail, file->tail, n);
}

enum jit_file_state jit_file__look(struct jit_file *file)
{
	int64_t mtime_ns;
	struct stat st;

	if (fstat(file->fd, &st))
		return JIT_FILE_SAME;
	file->size = st.st_size;
	mtime_ns = st.st_mtim.tv_sec * (int64_t)NSEC_PER_SEC + st.st_mtim.tv_nsec;
	if ((uint64_t)st.st_size == file->done && mtime_ns == file->mtime_ns)
		return JIT_FILE_SAME;
	file->mtime_ns = mtime_ns;
	if ((uint64_t)st.st_size < file->done || (file->done && !file->n_print) ||
	    !prints_match(file)) {
		file->done = file->n_print = 0;
		return JIT_FILE_REWRITTEN;
	}
	return (uint64_t)st.st_size > file->done ? JIT_FILE_GROWN : JIT_FILE_SAME;
}

void jit_file__take(struct jit_file *file, uint64_t done)
{
	size_t n = min_of(done, (uint64_t)JIT_FILE_PRINT);

	if (read_at(file, 0, file->head, n) != n || read_at(file, done - n, file->tail, n) != n)
		n = 0; /* the file shrinks during the read; the next jit_file__look() detects that
			*/
	file->n_print = n;
	file->done = done;
}
