// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/service/recording_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "core/base/foreign_path.h"
#include "core/base/sudo_user.h"
#include "core/base/util.h"
#include "core/store/load_file.h"
#include "core/store/recording_file.h"
#include "core/store/recording_name.h"

struct recording_dir_file {
	struct recording_name name;
	uint64_t bytes;
};

struct recording_dir {
	struct recording_dir_opts opts;
	struct recording_dir_stats stats;
	int fd, mark_fd;		  /* the directory; its mark file, locked */
	struct recording_dir_file *files; /* finished recordings, the oldest first */
	size_t n_files, cap_files;
	struct recording_name newest; /* newest name in use */
	bool has_newest;
	bool reported_keeps_none; /* the user was notified that no finished recording fits */

	/* --- the unfinished recording --- */
	struct recording *recording; /* NULL: none */
	struct recording_name writing_name;
	char *writing; /* path of the recording */
};

static int64_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec;
}

__attribute__((format(printf, 2, 3))) static void
recording_dir__note(const struct recording_dir *dir, const char *fmt, ...)
{
	char text[512];
	va_list args;

	if (!dir->opts.on_note)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	dir->opts.on_note(dir->opts.ctx, text);
}

static char *recording_dir__path(const struct recording_dir *dir, const char *name)
{
	char *ret;

	return asprintf(&ret, "%s/%s", dir->opts.path, name) < 0 ? NULL : ret;
}

const struct recording_dir_stats *recording_dir__stats(const struct recording_dir *dir)
{
	return &dir->stats;
}

/* --- removal --- */

static bool recording_dir__is_file(const struct recording_dir *dir, const char *name)
{
	struct stat st;

	return !fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode);
}

/* Removes the oldest recording. Returns -ENOENT if there is none. If another user removed it, or
 * replaced it by something else than a file, only its entry is removed. */
static int drop(struct recording_dir *dir, struct err *err)
{
	char text[RECORDING_NAME_BYTES];

	if (!dir->n_files)
		return -ENOENT;
	recording_name__text(&dir->files[0].name, RECORDING_DONE, text);
	if (recording_dir__is_file(dir, text) && unlinkat(dir->fd, text, 0) && errno != ENOENT)
		return err__set(err, -errno, "cannot remove %s/%s: %s", dir->opts.path, text,
				strerror(errno));
	dir->stats.bytes -= dir->files[0].bytes;
	dir->stats.files = --dir->n_files;
	memmove(dir->files, dir->files + 1, dir->n_files * sizeof(*dir->files));
	return 0;
}

/* Returns true if RLIMIT_FSIZE may be the cause. The removal of old recordings does not help then.
 */
static bool is_about_the_file(const struct recording_dir *dir)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	       dir->stats.bytes_now >= limit.rlim_cur / 2;
}

/* Makes space after -ENOSPC. Returns 0 if there may be space now, else -ENOSPC. The
 * caller's message of the failed write is then still valid. */
static int make_room(struct recording_dir *dir)
{
	char text[RECORDING_NAME_BYTES];

	if (!dir->n_files || is_about_the_file(dir))
		return -ENOSPC;
	recording_name__text(&dir->files[0].name, RECORDING_DONE, text);
	if (drop(dir, NULL))
		return -ENOSPC;
	dir->stats.dropped_full++;
	recording_dir__note(dir,
			    "no disk space is left for %s: its oldest recording, %s, was removed",
			    dir->opts.path, text);
	return 0;
}

static int recording_dir__keep_bounds(struct recording_dir *dir, struct err *err)
{
	const struct recording_dir_opts *opts = &dir->opts;
	int ret = 0;

	while (!ret && dir->n_files &&
	       (dir->n_files > opts->keep ||
		(opts->keep_bytes && dir->stats.bytes + dir->stats.bytes_now > opts->keep_bytes))) {
		if (dir->n_files == 1 && !dir->reported_keeps_none) {
			dir->reported_keeps_none = true;
			recording_dir__note(
				dir, "--keep-bytes is too small for one finished recording and the "
				     "current one: each finished recording is removed");
		}
		ret = drop(dir, err);
		dir->stats.dropped += !ret;
	}
	return ret;
}

/* --- one recording --- */

static int recording_dir__add(struct recording_dir *dir, const struct recording_name *name)
{
	char text[RECORDING_NAME_BYTES], *path;
	struct stat st = {};

	recording_name__text(name, RECORDING_DONE, text);
	path = recording_dir__path(dir, text);
	if (!path ||
	    array__reserve(&dir->files, &dir->cap_files, dir->n_files + 1, sizeof(*dir->files))) {
		free(path);
		return -ENOMEM;
	}
	stat(path, &st);
	free(path);
	dir->files[dir->n_files++] = (struct recording_dir_file) { *name, st.st_size };
	dir->stats.files = dir->n_files;
	dir->stats.bytes += st.st_size;
	return 0;
}

int recording_dir__begin(struct recording_dir *dir, struct recording **ret, struct err *err)
{
	char text[RECORDING_NAME_BYTES], *path;
	int code;

	dir->newest = recording_name__next(dir->has_newest ? &dir->newest : NULL, now_s());
	dir->has_newest = true;
	recording_name__text(&dir->newest, RECORDING_BEING_WRITTEN, text);
	path = recording_dir__path(dir, text);
	if (!path)
		return err__set(err, -ENOMEM, "out of memory");
	do
		code = recording__create(path, false, ret, err);
	while (code == -ENOSPC && !make_room(dir));
	if (code) {
		free(path);
		return code;
	}
	recording__keep_trying(*ret);
	free(dir->writing);
	dir->writing = path;
	dir->writing_name = dir->newest;
	dir->recording = *ret;
	return 0;
}

static int commit(struct recording_dir *dir, bool last, struct err *err)
{
	struct stat st;
	int code;

	do
		code = last ? recording__complete(dir->recording, err)
			    : recording__commit(dir->recording, err);
	while (code == -ENOSPC && !make_room(dir));
	dir->stats.bytes_now = stat(dir->writing, &st) ? 0 : st.st_size;
	return code;
}

int recording_dir__commit(struct recording_dir *dir, struct err *err)
{
	int code = commit(dir, false, err);

	return code ? code : recording_dir__keep_bounds(dir, err);
}

static int recording_dir__rename(struct recording_dir *dir, const struct recording_name *name,
				 struct err *err)
{
	char from[RECORDING_NAME_BYTES], to[RECORDING_NAME_BYTES];

	recording_name__text(name, RECORDING_BEING_WRITTEN, from);
	recording_name__text(name, RECORDING_DONE, to);
	if (renameat2(dir->fd, from, dir->fd, to, RENAME_NOREPLACE) &&
	    (errno != EINVAL || renameat(dir->fd, from, dir->fd, to)))
		return err__set(err, -errno, "cannot rename %s in %s: %s", from, dir->opts.path,
				strerror(errno));
	if (recording_dir__add(dir, name))
		return err__set(err, -ENOMEM, "out of memory");
	return 0;
}

int recording_dir__finish(struct recording_dir *dir, struct err *err)
{
	int code, closed;

	if (!dir->recording)
		return 0;
	code = commit(dir, true, err);
	closed = recording__close(dir->recording, code ? NULL : err);
	dir->recording = NULL;
	code = code ? code : closed;
	/* Includes a recording that could not be written completely: it has all committed data. */
	closed = recording_dir__rename(dir, &dir->writing_name, code ? NULL : err);
	dir->stats.bytes_now = 0;
	dir->stats.finished += !closed;
	code = code ? code : closed;
	return code ? code : recording_dir__keep_bounds(dir, err);
}

int recording_dir__rotate(struct recording_dir *dir, struct recording **ret, struct err *err)
{
	struct recording_name old_name = dir->writing_name, new_name;
	char *old = strdup(dir->writing), *new;
	struct recording *last = dir->recording;
	int code =
		old ? recording_dir__begin(dir, ret, err) : err__set(err, -ENOMEM, "out of memory");

	if (code) {
		free(old);
		return code;
	}
	new = dir->writing;
	new_name = dir->writing_name;
	dir->recording = last;
	dir->writing = old;
	dir->writing_name = old_name;
	code = recording_dir__finish(dir, err);
	free(old);
	dir->recording = *ret;
	dir->writing = new;
	dir->writing_name = new_name;
	return code;
}

void recording_dir__discard(struct recording_dir *dir)
{
	recording__discard(dir->recording);
	dir->recording = NULL;
}

/* --- opening a directory: checks its owner and its lock, and finishes files of a killed recorder
 * --- */

#define MARK	  ".braid-directory"
#define MARK_TEXT "braid fills this directory with recordings, and removes the oldest ones.\n"

static int failed(const struct recording_dir *dir, const char *what, struct err *err)
{
	int code = -errno;

	return err__set(err, code, "cannot %s %s: %s", what, dir->opts.path, strerror(-code));
}

/* Checks that the path has no link of another user, which could lead into any of the caller's
 * directories. */
static int check_link(const struct recording_dir *dir, struct err *err)
{
	char *path = strdup(dir->opts.path), *end;
	size_t len = path ? strlen(path) : 0;
	int code;

	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	code = path ? foreign_path__resolve(path, &end) : -ENOMEM;
	free(path);
	if (!code)
		free(end);
	if (code == -EACCES)
		return err__set(err, code,
				"cannot use %s: it is another user's link, in a directory that "
				"others may write. Choose another directory",
				dir->opts.path);
	return code ? err__set(err, code, "cannot open %s: %s", dir->opts.path, strerror(-code))
		    : 0;
}

static int open_dir(struct recording_dir *dir, struct err *err)
{
	int code = check_link(dir, err);
	bool created = !code && !mkdir(dir->opts.path, 0700);
	struct stat st;

	if (code)
		return code;
	if (!created && errno != EEXIST)
		return failed(dir, "make", err);
	dir->fd = open(dir->opts.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir->fd < 0 && errno == ENOTDIR)
		return err__set(err, -ENOTDIR,
				"%s is not a directory. With --rotate, -o names a directory",
				dir->opts.path);
	if (dir->fd < 0 || fstat(dir->fd, &st))
		return failed(dir, "open", err);
	if (created)
		sudo_user__give(dir->fd);
	else if (st.st_uid != geteuid() && !sudo_user__is(st.st_uid))
		return err__set(err, -EACCES,
				"cannot use %s: it belongs to user %u, not to the user who runs "
				"braid. Choose another directory",
				dir->opts.path, st.st_uid);
	if (!created && st.st_mode & (S_IWGRP | S_IWOTH))
		return err__set(err, -EACCES,
				"cannot use %s: other users may write into it. Use chmod go-w, or "
				"choose another directory",
				dir->opts.path);
	return 0;
}

/* --- the mark --- */

/* Returns the first entry except ".", ".." and the mark; NULL: there is none. Owned by the caller.
 */
static char *find_entry(const struct recording_dir *dir)
{
	DIR *stream = opendir(dir->opts.path);
	struct dirent *entry;
	char *found = NULL;

	while (stream && !found && (entry = readdir(stream)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    strcmp(entry->d_name, MARK) != 0)
			found = strdup(entry->d_name);
	if (stream)
		closedir(stream);
	return found;
}

/* Opens the mark, or creates it in an empty directory. */
static int open_mark(struct recording_dir *dir, struct err *err)
{
	const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	ssize_t size = strlen(MARK_TEXT);
	char *other;

	dir->mark_fd = openat(dir->fd, MARK, flags);
	if (dir->mark_fd >= 0 || errno != ENOENT)
		return dir->mark_fd < 0 ? failed(dir, "open " MARK " in", err) : 0;
	other = find_entry(dir);
	if (other)
		err__set(err, -EEXIST,
			 "cannot use %s: it contains other files (%.100s). Choose a new or an "
			 "empty directory",
			 dir->opts.path, other);
	free(other);
	if (other)
		return -EEXIST;
	dir->mark_fd = openat(dir->fd, MARK, flags | O_CREAT | O_EXCL, 0600);
	/* On a full disk the mark is empty, which is sufficient. */
	if (dir->mark_fd < 0 || (write(dir->mark_fd, MARK_TEXT, size) < size && errno != ENOSPC))
		return failed(dir, "write into", err);
	sudo_user__give(dir->mark_fd);
	return 0;
}

static int lock(const struct recording_dir *dir, struct err *err)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (!fcntl(dir->mark_fd, F_OFD_SETLK, &whole))
		return 0;
	if (errno == EAGAIN || errno == EACCES)
		return err__set(err, -EBUSY,
				"another braid is recording to %s. Choose another directory, or "
				"end that braid",
				dir->opts.path);
	return failed(dir, "lock", err);
}

/* --- present files --- */

/* Returns true for a temporary recording, or its journal, of a recorder that was killed before the
 * rename. */
static bool is_stray(const struct recording_dir *dir, const char *name)
{
	static const char prefix[] = ".braid-";
	size_t len = strlen(name), at = sizeof(prefix) - 1;
	struct stat st;

	return !strncmp(name, prefix, at) && len >= at + 6 &&
	       (len == at + 6 || !strcmp(name + at + 6, "-journal")) &&
	       !fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
	       (st.st_uid == geteuid() || sudo_user__is(st.st_uid));
}

static void remove_stray(const struct recording_dir *dir, const char *name)
{
	int fd = openat(dir->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	uint32_t version;
	char *path = recording_dir__path(dir, name);
	struct stat st;

	if (fd >= 0 && path && !fstat(fd, &st) &&
	    (!st.st_size || recording_file__is_journal(fd) ||
	     !recording_file__identify(path, &version, NULL)))
		unlinkat(dir->fd, name, 0);
	close_fd(&fd);
	free(path);
}

/* Finishes a recording of a killed recorder. SQLite undoes an incomplete change. An unreadable
 * recording gets its final name, too: readers will report the damage, and it is removed when it is
 * the oldest. */
static int finish_left(struct recording_dir *dir, const struct recording_name *name,
		       struct err *err)
{
	char text[RECORDING_NAME_BYTES], *path, *journal = NULL;
	struct err why = {};
	uint32_t version;
	sqlite3 *db;
	int fd = -1, code;

	recording_name__text(name, RECORDING_BEING_WRITTEN, text);
	path = recording_dir__path(dir, text);
	if (!path || asprintf(&journal, "%s-journal", path) < 0) {
		free(path);
		return err__set(err, -ENOMEM, "out of memory");
	}
	code = load_file__open(path, &db, &version, &why);
	if (!code)
		sqlite3_close(db);
	fd = open(journal, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (!code && fd >= 0 && recording_file__is_journal(fd))
		unlink(journal); /* a journal without a recording to restore */
	close_fd(&fd);
	recording_dir__note(dir, "%s comes from a braid that was killed: %s", text,
			    code ? why.text : "it has all committed data");
	free(journal);
	free(path);
	return recording_dir__rename(dir, name, err);
}

struct found {
	struct recording_name name;
	enum recording_state state;
};

static int by_name(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return recording_name__compare(&x->name, &y->name);
}

static int list(const struct recording_dir *dir, struct found **ret, size_t *ret_n)
{
	DIR *stream = opendir(dir->opts.path);
	size_t n = 0, cap = 0;
	struct found found;
	struct dirent *entry;
	int code = stream ? 0 : -errno;

	while (!code && (entry = readdir(stream))) {
		if (is_stray(dir, entry->d_name))
			remove_stray(dir, entry->d_name);
		if (!recording_name__parse(entry->d_name, &found.name, &found.state) ||
		    !recording_dir__is_file(dir, entry->d_name))
			continue;
		code = array__reserve(ret, &cap, n + 1, sizeof(**ret));
		if (!code)
			(*ret)[n++] = found;
	}
	if (stream)
		closedir(stream);
	if (n)
		qsort(*ret, n, sizeof(**ret), by_name);
	*ret_n = n;
	return code;
}

static int take_stock(struct recording_dir *dir, struct err *err)
{
	struct found *found = NULL;
	size_t n = 0, i;
	int code = list(dir, &found, &n);

	if (code)
		err__set(err, code, "cannot read %s: %s", dir->opts.path, strerror(-code));
	for (i = 0; !code && i < n; i++) {
		if (found[i].state == RECORDING_BEING_WRITTEN)
			code = finish_left(dir, &found[i].name, err);
		else if (recording_dir__add(dir, &found[i].name))
			code = err__set(err, -ENOMEM, "out of memory");
		dir->newest = found[i].name;
		dir->has_newest = true;
	}
	free(found);
	return code ? code : recording_dir__keep_bounds(dir, err);
}

int recording_dir__open(const struct recording_dir_opts *opts, struct recording_dir **ret,
			struct err *err)
{
	struct recording_dir *dir = calloc(1, sizeof(*dir));
	int code;

	if (!dir)
		return err__set(err, -ENOMEM, "out of memory");
	dir->opts = *opts;
	dir->fd = dir->mark_fd = -1;
	code = open_dir(dir, err);
	if (!code)
		code = open_mark(dir, err);
	if (!code)
		code = lock(dir, err);
	if (!code)
		code = take_stock(dir, err);
	if (code)
		recording_dir__free(dir);
	else
		*ret = dir;
	return code;
}

void recording_dir__free(struct recording_dir *dir)
{
	if (!dir)
		return;
	recording_dir__finish(dir, NULL);
	close_fd(&dir->mark_fd);
	close_fd(&dir->fd);
	free(dir->writing);
	free(dir->files);
	free(dir);
}
