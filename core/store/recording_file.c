// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/store/recording_file.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/file_beside.h"
#include "core/base/foreign_path.h"
#include "core/base/sudo_user.h"
#include "core/base/util.h"
#include "core/store/recording.h"

/* The SQLite database header, https://www.sqlite.org/fileformat2.html#the_database_header */
#define HEADER_BYTES	      100
#define HEADER_MAGIC	      "SQLite format 3" /* with its NUL */
#define HEADER_WRITE_VERSION  18		/* 1: rollback journal, 2: write-ahead log */
#define HEADER_READ_VERSION   19
#define HEADER_USER_VERSION   60 /* big-endian, as stored */
#define HEADER_APPLICATION_ID 68

/* Returns the lock that a recorder holds on the first byte of its file. SQLite's own locks are at 1
 * GiB and never overlap it. An open file description lock survives SQLite's close of other
 * descriptors. */
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

/* Opens the file for inspection. O_NONBLOCK: a FIFO must not block braid. */
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

static bool is_marked(int fd)
{
	struct flock mark = writer_mark();

	return !fcntl(fd, F_OFD_GETLK, &mark) && mark.l_type != F_UNLCK;
}

bool recording_file__is_being_written(const char *path)
{
	int fd = open_to_look(path, NULL);
	bool ret = fd >= 0 && is_marked(fd);

	close_fd(&fd);
	return ret;
}

/* --- files beside a recording --- */

/* https://www.sqlite.org/fileformat2.html#the_rollback_journal. If that magic ends a journal, the
 * name of another file precedes it, and SQLite would remove that file. */
static const uint8_t journal_magic[] = { 0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7 };

bool recording_file__is_journal(int fd)
{
	uint8_t begin[sizeof(journal_magic)] = {}, end[sizeof(journal_magic)] = {};
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return false;
	if (!st.st_size)
		return true;
	return pread(fd, begin, sizeof(begin), 0) == sizeof(begin) &&
	       !memcmp(begin, journal_magic, sizeof(begin)) &&
	       pread(fd, end, sizeof(end), st.st_size - sizeof(end)) == sizeof(end) &&
	       (st.st_size == sizeof(end) || memcmp(end, journal_magic, sizeof(end)) != 0);
}

/* Returns 0 if there is no file, 1 if there is a journal as braid writes it, or -EEXIST or another
 * errno. */
static int find_journal(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	int ret;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 && errno == ENAMETOOLONG)
		return err__set(err, -errno, "cannot create %s: %s", path, strerror(errno));
	ret = fd >= 0 && recording_file__is_journal(fd) ? 1 : -EEXIST;
	close_fd(&fd);
	return ret < 0 ? err__set(err, ret,
				  "cannot record beside %s: SQLite would treat it as a part of the "
				  "recording. Move it, or choose another output file with -o",
				  path)
		       : ret;
}

static char *with_suffix(const char *path, const char *suffix)
{
	char *ret;

	return asprintf(&ret, "%s%s", path, suffix) < 0 ? NULL : ret;
}

/* Refuses files beside @path that SQLite would treat as a part of a recording there. @owner: there
 * is a recording, which may own a journal. */
static int check_company(const char *path, bool owner, struct err *err)
{
	char *journal = with_suffix(path, "-journal"), *wal = with_suffix(path, "-wal");
	struct stat st;
	int ret;

	if (!journal || !wal) {
		ret = err__set(err, -ENOMEM, "out of memory");
		goto out;
	}
	ret = find_journal(journal, err);
	if (ret > 0 && !owner)
		ret = err__set(err, -EEXIST,
			       "cannot record beside %s: it is the journal of a missing database. "
			       "Move it, or choose another output file with -o",
			       journal);
	if (ret >= 0 && !lstat(wal, &st)) /* braid creates no write-ahead logs */
		ret = err__set(err, -EEXIST,
			       "cannot record beside %s: SQLite would treat it as a part of the "
			       "recording. Move it, or choose another output file with -o",
			       wal);
out:
	free(journal);
	free(wal);
	return min_of(ret, 0);
}

bool recording_file__uses_wal(const char *path)
{
	uint8_t header[HEADER_BYTES];
	int fd = open_to_look(path, NULL);
	bool ret = fd < 0 || pread(fd, header, sizeof(header), 0) != sizeof(header) ||
		   header[HEADER_WRITE_VERSION] != 1 || header[HEADER_READ_VERSION] != 1;

	close_fd(&fd);
	return ret;
}

/* --- an existing file --- */

enum there { THERE_NOTHING, THERE_RECORDING, THERE_OTHER };

/* Returns an enum there, or a negative errno. A regular file must not have a writer. @force: it may
 * belong to another user. */
static int find(const char *path, bool force, struct err *err)
{
	uint32_t version;
	bool recording, busy;
	struct stat st;
	int fd;

	if (lstat(path, &st))
		return errno == ENOENT ? THERE_NOTHING
				       : err__set(err, -errno, "cannot create %s: %s", path,
						  strerror(errno));
	if (S_ISDIR(st.st_mode))
		return err__set(err, -EISDIR,
				"cannot write %s: it is a directory. Choose a file with -o", path);
	if (!force && foreign_path__is_foreign(path, &st))
		return err__set(
			err, -EACCES,
			"cannot create %s: another user's file is there, in a directory that "
			"others may write. Choose another name with -o",
			path);
	/* --force must not remove /dev/null, nor the target of a link. */
	if (!S_ISREG(st.st_mode))
		return err__set(err, -EEXIST,
				"cannot write %s: it exists and is not a regular file. Choose "
				"another one with -o",
				path);
	fd = open_to_look(path, err);
	if (fd < 0)
		return fd;
	recording = !identify_fd(fd, path, &version, NULL);
	busy = recording && is_marked(fd);
	close_fd(&fd);
	if (busy)
		return err__set(err, -EBUSY, "%s is being written by another braid", path);
	return recording ? THERE_RECORDING : THERE_OTHER;
}

/* Checks the place to which a recording at @path would be moved. */
static int check_old(const char *path, struct err *err)
{
	char *old = with_suffix(path, ".old");
	int there = old ? find(old, false, err) : err__set(err, -ENOMEM, "out of memory"),
	    ret = there;

	if (there == THERE_OTHER)
		ret = err__set(err, -EEXIST,
			       "cannot move the old recording to %s: that file exists and is not a "
			       "recording. Move it, or choose another output file than %s with -o",
			       old, path);
	if (ret >= 0)
		ret = check_company(old, there == THERE_RECORDING, err);
	free(old);
	return min_of(ret, 0);
}

/* Checks whether a recording may replace the file at @path. Returns an enum there or a negative
 * errno. */
static int check(const char *path, bool force, struct err *err)
{
	int there = find(path, force, err), ret = there;

	if (there == THERE_OTHER && !force)
		ret = err__set(err, -EEXIST,
			       "%s exists and is not a braid recording. Use --force to replace it",
			       path);
	if (ret >= 0)
		ret = check_company(path, there == THERE_RECORDING, err);
	if (ret >= 0 && there == THERE_RECORDING)
		ret = check_old(path, err);
	return ret < 0 ? ret : there;
}

/* --- replacement of the file --- */

int recording_file__claim(const char *path, bool force, struct recording_claim *ret,
			  struct err *err)
{
	struct flock mark = writer_mark();
	int code = check(path, force, err);

	*ret = (struct recording_claim) { .file = { .fd = -1 }, .force = force };
	if (code < 0)
		return code;
	code = file_beside__create(path, &ret->file);
	if (code)
		return err__set(err, code, "cannot create %s: %s", path, strerror(-code));
	sudo_user__give(ret->file.fd);
	/* On a file system without locks, two simultaneous recorders stay undetected. */
	fcntl(ret->file.fd, F_OFD_SETLK, &mark);
	return 0;
}

/* Moves a file with its journal, which a writer leaves that is killed during a commit. Apart, each
 * of the two could damage another recording. Removes an older journal of @to. */
static int move(const char *from, const char *to)
{
	char *from_journal = with_suffix(from, "-journal");
	char *to_journal = with_suffix(to, "-journal");
	int ret = from_journal && to_journal ? 0 : -ENOMEM;

	if (!ret && unlink(to_journal) && errno != ENOENT)
		ret = -errno;
	if (!ret && rename(from, to))
		ret = -errno;
	if (!ret && rename(from_journal, to_journal) && errno != ENOENT)
		ret = -errno;
	free(from_journal);
	free(to_journal);
	return ret;
}

static int set_aside(const char *path, struct recording_claim *claim)
{
	char *aside;
	int fd, ret;

	if (asprintf(&aside, "%s.old.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(aside, O_CLOEXEC);
	ret = fd < 0 ? -errno : move(path, aside);
	if (ret && fd >= 0)
		unlink(aside);
	close_fd(&fd);
	claim->aside = ret ? NULL : aside;
	if (ret)
		free(aside);
	return ret;
}

int recording_file__place(const char *path, struct recording_claim *claim, struct err *err)
{
	int there = check(path, claim->force, err), ret = 0;

	if (there < 0)
		return there;
	claim->keep = there == THERE_RECORDING;
	if (there != THERE_NOTHING)
		ret = set_aside(path, claim);
	if (!ret)
		ret = file_beside__place(&claim->file, path);
	if (ret)
		return err__set(err, ret, "cannot create %s: %s", path, strerror(-ret));
	claim->placed = true;
	return 0;
}

int recording_file__settle(const char *path, struct recording_claim *claim, struct err *err)
{
	char *old = with_suffix(path, ".old");
	int ret = old ? 0 : -ENOMEM;

	if (claim->aside && claim->keep && !ret)
		ret = move(claim->aside, old);
	else if (claim->aside && !ret)
		ret = unlink(claim->aside) ? -errno : 0;
	if (ret)
		err__set(err, ret, "cannot rename %s to %s: %s", claim->aside, old ? old : ".old",
			 strerror(-ret));
	else
		claim->settled = true;
	free(old);
	return ret;
}

void recording_file__release(const char *path, struct recording_claim *claim)
{
	char *journal = claim->placed ? with_suffix(path, "-journal") : NULL;

	if (!claim->settled && journal)
		unlink(journal);
	if (!claim->settled && claim->placed)
		unlink(path);
	if (!claim->settled && claim->aside && access(path, F_OK)) /* still no file there */
		move(claim->aside, path);
	free(journal);
	free(claim->aside);
	file_beside__done(&claim->file);
	*claim = (struct recording_claim) { .file = { .fd = -1 } };
}

char *recording_file__sqlite_path(const char *path)
{
	char *ret;

	return asprintf(&ret, "%s%s", *path == '/' ? "" : "./", path) < 0 ? NULL : ret;
}
