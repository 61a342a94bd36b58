// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/recording_file.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/recording.h"
#include "core/util.h"

/* The SQLite database header, https://www.sqlite.org/fileformat2.html#the_database_header */
#define HEADER_BYTES	      100
#define HEADER_MAGIC	      "SQLite format 3" /* with its NUL */
#define HEADER_USER_VERSION   60		/* big-endian, as is */
#define HEADER_APPLICATION_ID 68

/* A recorder locks the first byte of its file. SQLite's own locks lie at 1 GiB, so the two never
 * meet; an open file description lock survives SQLite's closing of other descriptors. */
static struct flock writer_mark(void)
{
	return (struct flock) { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1 };
}

static uint32_t header_u32(const uint8_t *header, size_t at)
{
	uint32_t value;

	memcpy(&value, header + at, sizeof(value));
	return be32toh(value);
}

static int identify_fd(int fd, const char *path, uint32_t *ret_version, struct err *err)
{
	uint8_t header[HEADER_BYTES];
	struct stat st;

	if (fstat(fd, &st))
		return err__set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return err__set(err, -EBADMSG, "%s is a directory, not a recording", path);
	if (!S_ISREG(st.st_mode) || pread(fd, header, sizeof(header), 0) != sizeof(header) ||
	    memcmp(header, HEADER_MAGIC, sizeof(HEADER_MAGIC)) ||
	    header_u32(header, HEADER_APPLICATION_ID) != RECORDING_APPLICATION_ID)
		return err__set(err, -EBADMSG, "%s is not a braid recording", path);
	*ret_version = header_u32(header, HEADER_USER_VERSION);
	return 0;
}

/* O_NONBLOCK: a FIFO must not make us wait. */
static int open_to_look(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return err__set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	return fd;
}

int recording_file__identify(const char *path, uint32_t *ret_version, struct err *err)
{
	int fd = open_to_look(path, err), ret;

	if (fd < 0)
		return fd;
	ret = identify_fd(fd, path, ret_version, err);
	close_fd(&fd);
	return ret;
}

/* The rollback journal, which is there if a writer was killed while it committed, goes with its
 * file: alone, each could damage another recording. */
static int move(const char *from, const char *to, struct err *err)
{
	char *from_journal = NULL, *to_journal = NULL;
	int ret = 0;

	if (asprintf(&from_journal, "%s-journal", from) < 0)
		from_journal = NULL;
	if (asprintf(&to_journal, "%s-journal", to) < 0)
		to_journal = NULL;
	if (!from_journal || !to_journal) {
		ret = err__set(err, -ENOMEM, "out of memory");
		goto out;
	}
	if (unlink(to_journal) && errno != ENOENT) {
		ret = err__set(err, -errno, "cannot remove %s: %s", to_journal, strerror(errno));
		goto out;
	}
	if (rename(from, to) || (rename(from_journal, to_journal) && errno != ENOENT))
		ret = err__set(err, -errno, "cannot rename %s to %s: %s", from, to,
			       strerror(errno));
out:
	free(from_journal);
	free(to_journal);
	return ret;
}

static int move_to_old(const char *path, bool back, struct err *err)
{
	char *old;
	int ret;

	if (asprintf(&old, "%s.old", path) < 0)
		return err__set(err, -ENOMEM, "out of memory");
	ret = back ? move(old, path, err) : move(path, old, err);
	free(old);
	return ret;
}

/* Makes room at `path`, where a regular file is. */
static int replace(const char *path, bool force, bool *ret_moved, struct err *err)
{
	struct flock mark = writer_mark();
	int fd = open_to_look(path, err), ret;
	bool recording, busy;
	uint32_t version;

	if (fd < 0)
		return fd;
	recording = !identify_fd(fd, path, &version, NULL);
	busy = recording && !fcntl(fd, F_OFD_GETLK, &mark) && mark.l_type != F_UNLCK;
	close_fd(&fd);
	if (busy)
		return err__set(err, -EBUSY, "%s is being written by another braid", path);
	if (recording) {
		ret = move_to_old(path, false, err);
		*ret_moved = !ret;
		return ret;
	}
	if (!force)
		return err__set(err, -EEXIST,
				"%s exists and is not a braid recording; --force replaces it",
				path);
	if (unlink(path))
		return err__set(err, -errno, "cannot remove %s: %s", path, strerror(errno));
	return 0;
}

int recording_file__claim(const char *path, bool force, int *ret_fd, bool *ret_moved,
			  struct err *err)
{
	struct flock mark = writer_mark();
	bool moved = false;
	struct stat st;
	int fd, ret;

	if (!lstat(path, &st)) {
		if (S_ISDIR(st.st_mode))
			return err__set(err, -EISDIR, "%s is a directory", path);
		/* --force must not remove /dev/null, nor what a link leads to. */
		if (!S_ISREG(st.st_mode))
			return err__set(err, -EEXIST, "%s exists and is not a regular file", path);
		ret = replace(path, force, &moved, err);
		if (ret)
			return ret;
	}
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0) {
		ret = err__set(err, -errno, "cannot create %s: %s", path, strerror(errno));
		if (moved)
			move_to_old(path, true, NULL);
		return ret;
	}
	/* Where the file system has no locks, two recorders at once go unnoticed. */
	fcntl(fd, F_OFD_SETLK, &mark);
	*ret_fd = fd;
	*ret_moved = moved;
	return 0;
}

void recording_file__abandon(const char *path, bool moved)
{
	char *journal;

	if (asprintf(&journal, "%s-journal", path) >= 0) {
		unlink(journal);
		free(journal);
	}
	unlink(path);
	if (moved)
		move_to_old(path, true, NULL);
}

char *recording_file__sqlite_path(const char *path)
{
	char *ret;

	return asprintf(&ret, "%s%s", *path == '/' ? "" : "./", path) < 0 ? NULL : ret;
}
