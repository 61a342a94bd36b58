// SPDX-License-Identifier: GPL-2.0-or-later
/* Taking a directory: is it braid's, does another one fill it, what has a killed one left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/foreign_path.h"
#include "core/base/sudo_user.h"
#include "core/base/util.h"
#include "core/store/load_file.h"
#include "core/store/recording_dir_state.h"
#include "core/store/recording_file.h"

#define MARK_TEXT "braid fills this directory with recordings, and removes the oldest ones.\n"

static int failed(const struct recording_dir *dir, const char *what, struct err *err)
{
	int code = -errno;

	return err__set(err, code, "cannot %s %s: %s", what, dir->opts.path, strerror(-code));
}

/* A link that another user may have put there could lead into any of the caller's directories. */
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
				"%s is another user's link, in a directory that others may write: "
				"name another directory",
				dir->opts.path);
	return code ? err__set(err, code, "cannot open %s: %s", dir->opts.path, strerror(-code))
		    : 0;
}

static int open_dir(struct recording_dir *dir, struct err *err)
{
	int code = check_link(dir, err);
	bool made = !code && !mkdir(dir->opts.path, 0700);
	struct stat st;

	if (code)
		return code;
	if (!made && errno != EEXIST)
		return failed(dir, "make", err);
	dir->fd = open(dir->opts.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir->fd < 0 && errno == ENOTDIR)
		return err__set(err, -ENOTDIR,
				"%s is no directory: with --rotate, -o names a directory",
				dir->opts.path);
	if (dir->fd < 0 || fstat(dir->fd, &st))
		return failed(dir, "open", err);
	if (made)
		sudo_user__give(dir->fd);
	else if (st.st_uid != geteuid() && !sudo_user__is(st.st_uid))
		return err__set(
			err, -EACCES,
			"%s belongs to user %u, not to who runs braid: name another directory",
			dir->opts.path, st.st_uid);
	if (!made && st.st_mode & (S_IWGRP | S_IWOTH))
		return err__set(err, -EACCES,
				"others may write into %s: chmod go-w, or name another directory",
				dir->opts.path);
	return 0;
}

/* --- the mark --- */

/* Its first entry that is not the mark or one of the two that all have; NULL: there is none.
 * Owned by the caller. */
static char *find_entry(const struct recording_dir *dir)
{
	DIR *stream = opendir(dir->opts.path);
	struct dirent *entry;
	char *found = NULL;

	while (stream && !found && (entry = readdir(stream)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    strcmp(entry->d_name, RECORDING_DIR_MARK) != 0)
			found = strdup(entry->d_name);
	if (stream)
		closedir(stream);
	return found;
}

/* Of a mark that is there already, or of one that is made in an empty directory. */
static int open_mark(struct recording_dir *dir, struct err *err)
{
	const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	ssize_t size = strlen(MARK_TEXT);
	char *other;

	dir->mark_fd = openat(dir->fd, RECORDING_DIR_MARK, flags);
	if (dir->mark_fd >= 0 || errno != ENOENT)
		return dir->mark_fd < 0 ? failed(dir, "open " RECORDING_DIR_MARK " in", err) : 0;
	other = find_entry(dir);
	if (other)
		err__set(err, -EEXIST,
			 "%s has other files (%.100s) and is not a directory that braid fills: "
			 "name a "
			 "new or an empty one",
			 dir->opts.path, other);
	free(other);
	if (other)
		return -EEXIST;
	dir->mark_fd = openat(dir->fd, RECORDING_DIR_MARK, flags | O_CREAT | O_EXCL, 0600);
	/* On a full disk it stays empty, and is as good. */
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
				"%s is being filled by another braid: name another "
				"directory, or end that one",
				dir->opts.path);
	return failed(dir, "lock", err);
}

/* --- what is there --- */

/* A recording on its way to its place, or its journal, of a recorder that was killed just then. */
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

/* SQLite restores what the recorder was changing when it was killed. What cannot be read gets its
 * name, too: readers will say so, and it goes when it is the oldest one. */
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
		unlink(journal); /* of nothing any more */
	close_fd(&fd);
	recording_dir__note(dir, "%s was left by a braid that was killed: %s", text,
			    code ? why.text : "it has all that was committed");
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

bool recording_dir__is(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}
