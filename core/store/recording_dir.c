// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/store/recording_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "core/base/util.h"
#include "core/store/recording_dir_state.h"
#include "core/store/recording_file.h"

static int64_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec;
}

void recording_dir__note(const struct recording_dir *dir, const char *fmt, ...)
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

char *recording_dir__path(const struct recording_dir *dir, const char *name)
{
	char *ret;

	return asprintf(&ret, "%s/%s", dir->opts.path, name) < 0 ? NULL : ret;
}

const struct recording_dir_stats *recording_dir__stats(const struct recording_dir *dir)
{
	return &dir->stats;
}

/* --- what goes --- */

bool recording_dir__is_file(const struct recording_dir *dir, const char *name)
{
	struct stat st;

	return !fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode);
}

/* The oldest one. -ENOENT: there is none. What somebody else has removed, or replaced by what is no
 * file, is none of braid's any more. */
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

/* Of a file's size there may be a limit, too, which nothing is gained for. */
static bool is_about_the_file(const struct recording_dir *dir)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	       dir->stats.bytes_now >= limit.rlim_cur / 2;
}

/* After -ENOSPC: 0 if there may be room now, else -ENOSPC with the sentence of before. */
static int make_room(struct recording_dir *dir)
{
	char text[RECORDING_NAME_BYTES];

	if (!dir->n_files || is_about_the_file(dir))
		return -ENOSPC;
	recording_name__text(&dir->files[0].name, RECORDING_DONE, text);
	if (drop(dir, NULL))
		return -ENOSPC;
	dir->stats.dropped_full++;
	recording_dir__note(dir, "no space is left for %s: its oldest recording, %s, was removed",
			    dir->opts.path, text);
	return 0;
}

int recording_dir__keep_bounds(struct recording_dir *dir, struct err *err)
{
	const struct recording_dir_opts *opts = &dir->opts;
	int ret = 0;

	while (!ret && dir->n_files &&
	       (dir->n_files > opts->keep ||
		(opts->keep_bytes && dir->stats.bytes + dir->stats.bytes_now > opts->keep_bytes))) {
		if (dir->n_files == 1 && !dir->told_keeps_none) {
			dir->told_keeps_none = true;
			recording_dir__note(dir,
					    "--keep-bytes has no room for one finished recording "
					    "beside the one that is being written: none is kept");
		}
		ret = drop(dir, err);
		dir->stats.dropped += !ret;
	}
	return ret;
}

/* --- one recording --- */

int recording_dir__add(struct recording_dir *dir, const struct recording_name *name)
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

int recording_dir__rename(struct recording_dir *dir, const struct recording_name *name,
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
	/* Also of one that could not be written to its end: it has what was committed. */
	closed = recording_dir__rename(dir, &dir->writing_name, code ? NULL : err);
	dir->stats.bytes_now = 0;
	dir->stats.finished += !closed;
	code = code ? code : closed;
	return code ? code : recording_dir__keep_bounds(dir, err);
}

int recording_dir__turn(struct recording_dir *dir, struct recording **ret, struct err *err)
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
