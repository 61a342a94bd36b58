// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/file_beside.h"
#include "core/base/util.h"
#include "core/store/recording_file.h"

#define NEW_MODE 0666 /* less the umask */

/* --- what is there --- */

enum there { THERE_NOTHING, THERE_FILE, THERE_DEVICE, THERE_STDOUT };

static bool is_stdout(const struct stat *st)
{
	struct stat ours;

	return !fstat(STDOUT_FILENO, &ours) && ours.st_dev == st->st_dev &&
	       ours.st_ino == st->st_ino && (ours.st_mode & S_IFMT) == (st->st_mode & S_IFMT);
}

static int look_at_file(const char *path, bool force, struct err *err)
{
	uint32_t version;

	if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS))
		return err__set(err, -errno, "cannot write %s: %s", path, strerror(errno));
	if (!force && !recording_file__identify(path, &version, NULL))
		return err__set(err, -EEXIST, "%s is a recording; --force replaces it", path);
	return THERE_FILE;
}

/* Returns an enum there or a negative errno. O_PATH opens nothing, and follows links only where the
 * kernel lets it. */
static int look(const char *path, bool force, struct stat *ret_st, struct err *err)
{
	int fd = open(path, O_PATH | O_CLOEXEC), code = errno;
	struct stat st;

	if (fd < 0 && code == ENOENT && lstat(path, &st))
		return THERE_NOTHING;
	if (fd < 0)
		return err__set(err, -code, "cannot write %s: %s", path,
				code == ENOENT ? "the link leads nowhere" : strerror(code));
	code = fstat(fd, ret_st) ? -errno : 0;
	close_fd(&fd);
	if (code)
		return err__set(err, code, "cannot write %s: %s", path, strerror(-code));
	if (is_stdout(ret_st))
		return THERE_STDOUT;
	if (S_ISREG(ret_st->st_mode))
		return look_at_file(path, force, err);
	if (S_ISDIR(ret_st->st_mode))
		return err__set(err, -EISDIR, "cannot write %s: it is a directory", path);
	if (!force)
		return err__set(err, -EEXIST, "%s is not a regular file; --force writes into it",
				path);
	return THERE_DEVICE;
}

/* Where the new file goes: links are followed. Owned by the caller. */
static int resolve(const char *path, enum there there, char **ret, struct err *err)
{
	*ret = there == THERE_FILE ? realpath(path, NULL) : strdup(path);
	if (!*ret)
		return err__set(err, -errno, "cannot write %s: %s", path, strerror(errno));
	return 0;
}

static int check_directory(const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/');
	char *dir;
	int ret = 0;

	if (asprintf(&dir, "%.*s.", slash ? (int)(slash + 1 - path) : 0, path) < 0)
		return err__set(err, -ENOMEM, "out of memory");
	if (faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS))
		ret = err__set(err, -errno, "cannot write %s: no file can be made beside it: %s",
			       path, strerror(errno));
	free(dir);
	return ret;
}

int output_file__check(const char *path, bool force, struct err *err)
{
	struct stat st;
	char *place;
	int there, ret;

	if (!path)
		return 0;
	there = look(path, force, &st, err);
	if (there < 0 || there == THERE_DEVICE || there == THERE_STDOUT)
		return min_of(there, 0);
	ret = resolve(path, there, &place, err);
	if (ret)
		return ret;
	ret = check_directory(place, err);
	free(place);
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
	raise(number); /* once this handler, which is gone by now, returns */
}

/* The write fails with EFBIG then. Not ignored: a program that is executed would inherit that. */
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

/* As the file is that it replaces; `old` NULL: as new files are. What an owner or a group may do
 * must not become another's. */
static int set_mode(int fd, const struct stat *old)
{
	mode_t mask, mode;

	if (!old) {
		mask = umask(0);
		umask(mask);
		return fchmod(fd, NEW_MODE & ~mask) ? -errno : 0;
	}
	mode = old->st_mode & 0777;
	if (fchown(fd, old->st_uid, old->st_gid) && fchown(fd, -1, old->st_gid))
		mode &= ~S_IRWXG;
	return fchmod(fd, mode) ? -errno : 0;
}

static int open_beside(struct output_file *file, const struct stat *old, struct err *err)
{
	int code = file_beside__create(file->path, &file->beside), fd;

	if (code)
		return err__set(err, code, "cannot write %s: no file can be made beside it: %s",
				file->path, strerror(-code));
	watch_signals(file->beside.name);
	code = set_mode(file->beside.fd, old);
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

int output_file__open(const char *path, bool force, struct output_file *ret, struct err *err)
{
	struct stat st;
	int there = path ? look(path, force, &st, err) : THERE_STDOUT, code;

	*ret = (struct output_file) {};
	if (there < 0)
		return there;
	if (there == THERE_STDOUT) {
		ret->stream = stdout;
		return 0;
	}
	if (there == THERE_DEVICE)
		return open_device(path, ret, err);
	code = resolve(path, there, &ret->path, err);
	if (!code)
		code = open_beside(ret, there == THERE_FILE ? &st : NULL, err);
	if (code)
		output_file__close(ret, code);
	return code;
}

int output_file__close(struct output_file *file, int code)
{
	if (file->stream && fflush(file->stream) && !code)
		code = -errno;
	if (file->stream && file->stream != stdout && fclose(file->stream) && !code)
		code = -errno;
	if (file->path && !code)
		code = file_beside__replace(&file->beside, file->path);
	if (file->path) {
		file_beside__done(&file->beside);
		unwatch_signals();
	}
	free(file->path);
	*file = (struct output_file) {};
	return code;
}
