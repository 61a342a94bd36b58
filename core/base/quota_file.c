// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/quota.h"
#include "core/base/stop.h"
#include "core/base/util.h"

struct quota_account *quota__open_fd(int fd, const char *name)
{
	struct stat st;

	if (fstat(fd, &st))
		return NULL;
	return quota__open(&(struct quota_subject) {
		.dev = st.st_dev,
		.ino = st.st_ino,
		.size = st.st_size,
		.mtime_ns = st.st_mtim.tv_sec * (int64_t)NSEC_PER_SEC + st.st_mtim.tv_nsec,
		.uid = st.st_uid,
		.name = name });
}

/* Returns the end of the hole that contains @offset; @offset if it is not in a hole. */
static uint64_t end_of_hole(int fd, uint64_t offset, uint64_t end)
{
	off_t data = lseek(fd, offset, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? end : offset;
	return min_of((uint64_t)data, end);
}

uint64_t quota__skip_hole(int fd, uint64_t offset, uint64_t end)
{
	return fd < 0 ? offset : end_of_hole(fd, offset, end);
}

static uint64_t end_of_data(int fd, uint64_t offset, uint64_t end)
{
	off_t hole = lseek(fd, offset, SEEK_HOLE);

	return hole < 0 ? end : min_of((uint64_t)hole, end);
}

/* Returns false if the range exceeds the file: @offset may be beyond its end. */
static bool has_range(int fd, uint64_t offset, uint64_t n)
{
	struct stat st;

	return !fstat(fd, &st) && fits_in(offset, n, st.st_size);
}

static int read_data(struct quota_account *account, int fd, uint64_t at, uint64_t end, char *to)
{
	while (at < end) {
		size_t n = min_of(end - at, (uint64_t)QUOTA_BLOCK);
		int ret = quota__charge(account, QUOTA_READ, n);
		ssize_t got;

		if (ret)
			return ret;
		do
			got = pread(fd, to, n, at);
		while (got < 0 && errno == EINTR && !stop__is_due());
		if (got <= 0)
			return got ? -errno : -EFAULT;
		at += got;
		to += got;
	}
	return 0;
}

int quota__pread(struct quota_account *account, int fd, uint64_t offset, void *to, size_t n)
{
	uint64_t at = offset, end = offset + n;
	char *bytes = to;
	int ret = 0;

	if (!has_range(fd, offset, n))
		return -EFAULT;
	if (n <= QUOTA_BLOCK) /* reading a hole costs less than finding it */
		return read_data(account, fd, at, end, bytes);
	while (!ret && at < end) {
		uint64_t data_at = end_of_hole(fd, at, end);
		uint64_t data_end = data_at < end ? end_of_data(fd, data_at, end) : end;

		memset(bytes + (at - offset), 0, data_at - at);
		/* The file system changed meanwhile, or reports nonsense: read everything. */
		if (data_end <= data_at && data_at < end)
			data_end = end;
		ret = read_data(account, fd, data_at, data_end, bytes + (data_at - offset));
		at = data_end;
	}
	return ret;
}

uint64_t quota__data_bytes(int fd, uint64_t offset, uint64_t n)
{
	uint64_t at = offset, end = offset + n, sum = 0;
	struct stat st;

	if (end < at)
		return n;
	if (!fstat(fd, &st)) {
		end = min_of(end, (uint64_t)max_of(st.st_size, 0));
		/* The loop stops after 1024 extents; the number of blocks limits the result for a
		 * file with more. */
		n = min_of(n, (uint64_t)st.st_blocks * 512);
	}
	for (int i = 0; at < end && i < 1024; i++) {
		uint64_t data_at = end_of_hole(fd, at, end);
		uint64_t data_end = data_at < end ? end_of_data(fd, data_at, end) : end;

		if (data_end <= at)
			return n;
		sum += data_end - data_at;
		at = data_end;
	}
	return at < end ? n : min_of(sum, n);
}
