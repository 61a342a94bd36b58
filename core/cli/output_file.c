// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/file_beside.h"
#include "core/base/foreign_path.h"
#include "core/base/sudo_user.h"
#include "core/base/util.h"
#include "core/out/output.h"
#include "core/store/recording_file.h"

#define NEW_MODE 0666 /* less the umask */

/* --- an existing file --- */

enum there { THERE_NOTHING, THERE_FILE, THERE_DEVICE, THERE_STDOUT };

static bool is_stdout(const struct stat *st)
{
	struct stat ours;

	return !fstat(STDOUT_FILENO, &ours) && ours.st_dev == st->st_dev &&
	       ours.st_ino == st->st_ino && (ours.st_mode & S_IFMT) == (st->st_mode & S_IFMT);
}

static int refuse(const struct output_place *place, int code, const char *why, struct err *err)
{
	return err__set(err, code, "cannot write %s: %s", place->path, why);
}

/* --- default names --- */

bool output_file__is_page(const char *path)
{
	static const char *const marks[] = { OUTPUT_HTML_BEGIN, OUTPUT_SVG_BEGIN };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	char begin[128];
	ssize_t n = fd < 0 ? -1 : read(fd, begin, sizeof(begin));
	bool found = false;

	close_fd(&fd);
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		found |= n >= (ssize_t)strlen(marks[i]) &&
			 !memcmp(begin, marks[i], strlen(marks[i]));
	return found;
}

/* Sets *ret to the name to which the page at @path is moved. */
static int name_old(const char *path, char **ret)
{
	return asprintf(ret, "%s.old", path) < 0 ? -ENOMEM : 0;
}

/* Fails if the page at the place cannot be moved, because another file has the new name. */
static int check_old(const struct output_place *place, struct err *err)
{
	struct stat st;
	char *old;
	int ret = 0;

	if (name_old(place->path, &old))
		return err__set(err, -ENOMEM, "out of memory");
	if (!lstat(old, &st) && (!S_ISREG(st.st_mode) || !output_file__is_page(old)))
		ret = err__set(err, -EEXIST,
			       "cannot keep %s as %s: that file exists and was not written by "
			       "braid. Move it, or name the output with -o",
			       place->path, old);
	free(old);
	return ret;
}

static int check_own(const struct output_place *place, struct err *err)
{
	struct stat st;

	if (place->given || lstat(place->path, &st))
		return 0;
	if (!S_ISREG(st.st_mode))
		return err__set(err, -EEXIST,
				"cannot write %s: %s has that name. Name the output with -o",
				place->path,
				S_ISLNK(st.st_mode) ? "a symbolic link"
						    : "something that is no regular file");
	if (!place->force && !output_file__is_page(place->path))
		return refuse(place, -EEXIST,
			      "the file exists and was not written by braid. Name another one "
			      "with -o, or replace it with --force",
			      err);
	return output_file__is_page(place->path) ? check_old(place, err) : 0;
}

/* --- files --- */

static int look_at_file(const struct output_place *place, const char *path, const struct stat *st,
			struct err *err)
{
	uint32_t version;

	if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS))
		return refuse(place, -errno, strerror(errno), err);
	if (!place->force && !recording_file__identify(path, &version, NULL))
		return err__set(err, -EEXIST, "%s is a recording; --force replaces it",
				place->path);
	if (!place->force && foreign_path__is_foreign(path, st))
		return refuse(
			place, -EACCES,
			"it is another user's file in a directory that others may write. Name "
			"another one, or replace it with --force",
			err);
	return THERE_FILE;
}

/* @path: the target of links. */
static int look_at(const struct output_place *place, const char *path, const struct stat *st,
		   struct err *err)
{
	struct stat end;

	if (is_stdout(st))
		return THERE_STDOUT;
	if (S_ISREG(st->st_mode)) {
		if (lstat(path, &end) || end.st_dev != st->st_dev || end.st_ino != st->st_ino)
			return refuse(place, -ENOENT, "the file was deleted", err);
		return look_at_file(place, path, st, err);
	}
	if (S_ISDIR(st->st_mode))
		return refuse(place, -EISDIR, "it is a directory", err);
	if (S_ISBLK(st->st_mode) && !place->force)
		return err__set(err, -EEXIST, "%s is a block device; --force writes into it",
				place->path);
	/* /proc/PID/fd leads to pipes without a name. */
	if (!lstat(path, &end) && end.st_ino == st->st_ino && foreign_path__is_foreign(path, st))
		return refuse(place, -EACCES,
			      "it is another user's, in a directory that others may write", err);
	return THERE_DEVICE;
}

/* Returns an enum there or a negative errno. O_PATH opens nothing, and follows links only if the
 * kernel permits it. */
static int look(const struct output_place *place, struct stat *ret_st, char **ret_path,
		struct err *err)
{
	int code = check_own(place, err), fd;
	struct stat st;

	*ret_path = NULL;
	if (code)
		return code;
	code = foreign_path__resolve(place->path, ret_path);
	if (code == -EACCES)
		return refuse(place, code,
			      "it is another user's link in a directory that others may write",
			      err);
	if (code)
		return refuse(place, code, strerror(-code), err);
	fd = open(place->path, O_PATH | O_CLOEXEC);
	code = fd < 0 ? -errno : 0;
	if (code == -ENOENT && lstat(place->path, &st))
		return THERE_NOTHING;
	if (!code && fstat(fd, ret_st))
		code = -errno;
	close_fd(&fd);
	if (code)
		return refuse(place, code,
			      code == -ENOENT ? "the link's target does not exist"
					      : strerror(-code),
			      err);
	return look_at(place, *ret_path, ret_st, err);
}

static int check_directory(const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/');
	char *dir;
	int ret = 0;

	if (asprintf(&dir, "%.*s.", slash ? (int)(slash + 1 - path) : 0, path) < 0)
		return err__set(err, -ENOMEM, "out of memory");
	if (faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS))
		ret = err__set(err, -errno,
			       "cannot write %s: no file can be created in its directory: %s", path,
			       strerror(errno));
	free(dir);
	return ret;
}

int output_file__check(const struct output_place *place, struct err *err)
{
	struct stat st;
	char *path;
	int there, ret;

	if (!place->path)
		return 0;
	there = look(place, &st, &path, err);
	ret = min_of(there, 0);
	if (there == THERE_FILE || there == THERE_NOTHING)
		ret = check_directory(path, err);
	free(path);
	return ret;
}

/* --- signals --- */

static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
static struct sigaction before[ARRAY_SIZE(ending)], before_size;
static const char *volatile to_remove;

static void remove_and_end(int number)
{
	if (to_remove)
		unlink(to_remove);
	raise(number); /* after this handler, which was reset, returns */
}

/* The write then fails with EFBIG. The signal is not ignored, as child programs would inherit
 * that. */
static void go_on(int number)
{
	(void)number;
}

static void watch_signals(const char *beside)
{
	struct sigaction remover = { .sa_handler = remove_and_end, .sa_flags = SA_RESETHAND };
	struct sigaction size = { .sa_handler = go_on, .sa_flags = SA_RESTART };

	to_remove = beside;
	sigaction(SIGXFSZ, &size, &before_size);
	for (size_t i = 0; i < ARRAY_SIZE(ending); i++) {
		sigaction(ending[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN)
			sigaction(ending[i], &remover, NULL);
	}
}

static void unwatch_signals(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(ending); i++)
		sigaction(ending[i], &before[i], NULL);
	sigaction(SIGXFSZ, &before_size, NULL);
	to_remove = NULL;
}

/* --- writing --- */

/* Sets the permissions and owner of the file in @old; NULL: there is none. Group and others get no
 * more read permission than for the recording (@limit). */
static int set_mode(const struct output_file *file, const struct stat *old, mode_t limit)
{
	int fd = file->beside.fd;
	mode_t mask, mode;

	if (!old) {
		mask = umask(0);
		umask(mask);
		sudo_user__give(fd);
		return fchmod(fd, (limit ? limit & NEW_MODE : NEW_MODE) & ~mask) ? -errno : 0;
	}
	mode = old->st_mode & 0777;
	if (limit)
		mode &= limit;
	if (foreign_path__is_foreign(file->path, old))
		mode &= S_IRWXU;
	else if (fchown(fd, old->st_uid, old->st_gid) && fchown(fd, -1, old->st_gid))
		mode &= ~S_IRWXG;
	return fchmod(fd, mode) ? -errno : 0;
}

static int open_beside(struct output_file *file, const struct stat *old, mode_t limit,
		       struct err *err)
{
	int code = file_beside__create(file->path, &file->beside), fd;

	if (code)
		return err__set(err, code,
				"cannot write %s: no file can be created in its directory: %s",
				file->path, strerror(-code));
	watch_signals(file->beside.name);
	code = set_mode(file, old, limit);
	fd = code ? -1 : fcntl(file->beside.fd, F_DUPFD_CLOEXEC, 0);
	file->stream = fd < 0 ? NULL : fdopen(fd, "w");
	if (file->stream)
		return 0;
	code = code ? code : -errno;
	close_fd(&fd);
	return err__set(err, code, "cannot write %s: %s", file->path, strerror(-code));
}

static int open_device(const char *path, struct output_file *file, struct err *err)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	int ret = 0;

	file->stream = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file->stream) {
		ret = err__set(err, -errno, "cannot write %s: %s", path, strerror(errno));
		close_fd(&fd);
	}
	return ret;
}

int output_file__open(const struct output_place *place, struct output_file *ret, struct err *err)
{
	struct stat st;
	char *path = NULL;
	int there = place->path ? look(place, &st, &path, err) : THERE_STDOUT, code = 0;

	*ret = (struct output_file) { .given = place->given };
	if (there == THERE_FILE || there == THERE_NOTHING) {
		ret->path = path;
		path = NULL;
		ret->dev = there == THERE_FILE ? st.st_dev : 0;
		ret->ino = there == THERE_FILE ? st.st_ino : 0;
		code = open_beside(ret, there == THERE_FILE ? &st : NULL, place->mode, err);
		if (code)
			output_file__close(ret, code);
	} else if (there == THERE_DEVICE) {
		code = open_device(place->path, ret, err);
	} else if (there == THERE_STDOUT) {
		ret->stream = stdout;
	}
	free(path);
	return there < 0 ? there : code;
}

/* Gives the page at @path the name `path`.old as well, over an older page. */
static int keep_page(const char *path)
{
	char *old;
	int ret = name_old(path, &old);

	if (ret)
		return ret;
	if (output_file__is_page(old) && unlink(old))
		ret = -errno;
	if (!ret && link(path, old))
		ret = -errno;
	free(old);
	return ret;
}

/* Replaces a file at a default name only if it is still the file that was checked. */
static int take_place(struct output_file *file)
{
	struct stat st;
	int ret;

	if (file->given)
		return file_beside__replace(&file->beside, file->path);
	if (!file->ino)
		return file_beside__place(&file->beside, file->path);
	if (!lstat(file->path, &st) && (st.st_dev != file->dev || st.st_ino != file->ino))
		return -EEXIST;
	ret = output_file__is_page(file->path) ? keep_page(file->path) : 0;
	return ret ? ret : file_beside__replace(&file->beside, file->path);
}

int output_file__close(struct output_file *file, int code)
{
	if (file->stream && fflush(file->stream) && !code)
		code = -errno;
	if (file->stream && file->stream != stdout && fclose(file->stream) && !code)
		code = -errno;
	if (file->path && !code)
		code = take_place(file);
	if (file->path) {
		file_beside__done(&file->beside);
		unwatch_signals();
	}
	free(file->path);
	*file = (struct output_file) {};
	return code;
}
