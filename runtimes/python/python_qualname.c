// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/python/python_qualname.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "core/base/util.h"
#include "core/files/target_file.h"
#include "core/target/procfs.h"
#include "runtimes/python/python_scan.h"
#include "runtimes/python/python_source_age.h"

#define SOURCE_BYTES_MAX   (8 * 1024 * 1024)
#define QUALNAME_BYTES_MAX 1024
#define ARGUMENTS_BYTES	   (64 * 1024) /* bytes of the command line that are searched for a script */
/* With more bytes than this in memory, all sources are dropped, and read again when needed. */
#define CACHE_BYTES_MAX	   (64 * 1024 * 1024)

struct source_key {
	uint64_t dev, ino, size;
	int64_t mtime_ns;
};

struct source {
	struct source_key key;
	struct python_blocks blocks; /* none if the file is no good */
	UT_hash_handle hh;
};

struct python_sources {
	struct source *by_key;
	size_t bytes;
	bool any_age;
	char qualname[QUALNAME_BYTES_MAX];
};

struct python_sources *python_sources__new(void)
{
	return calloc(1, sizeof(struct python_sources));
}

void python_sources__take_any_age(struct python_sources *sources)
{
	sources->any_age = true;
}

static void source__free(struct source *source)
{
	if (!source)
		return;
	python_blocks__done(&source->blocks);
	free(source);
}

static void forget_all(struct python_sources *sources)
{
	struct source *source, *next;

	HASH_ITER (hh, sources->by_key, source, next) {
		HASH_DEL(sources->by_key, source);
		source__free(source);
	}
	sources->bytes = 0;
}

void python_sources__free(struct python_sources *sources)
{
	if (!sources)
		return;
	forget_all(sources);
	free(sources);
}

/* --- files --- */

static int read_link(uint32_t pid, const char *name, char *ret, size_t size)
{
	char link[PROCFS_PATH_BYTES];
	ssize_t n;

	snprintf(link, sizeof(link), "%s/%u/%s", procfs__root(), procfs__living(pid), name);
	n = readlink(link, ret, size);
	if (n < 0)
		return -errno;
	if ((size_t)n == size)
		return -ENAMETOOLONG;
	ret[n] = '\0';
	return 0;
}

/* Makes a path absolute. Up to 3.8 scripts are named as on the command line: relative to the
 * working directory, whose link is a path within the mount namespace, including the root of a
 * chroot. */
static int absolute_path(uint32_t pid, const char *path, char *ret, size_t size)
{
	char cwd[PATH_MAX], root[PATH_MAX];
	size_t skip;
	int rc;

	rc = read_link(pid, "cwd", cwd, sizeof(cwd));
	if (!rc)
		rc = read_link(pid, "root", root, sizeof(root));
	if (rc)
		return rc;
	skip = strcmp(root, "/") ? strlen(root) : 0;
	if (strncmp(cwd, root, skip) || (cwd[skip] && cwd[skip] != '/'))
		return -ENOENT;
	return (size_t)snprintf(ret, size, "%s/%s", cwd + skip, path) < size ? 0 : -ENAMETOOLONG;
}

/* Returns true if @path is an argument of the program: the text that exec() runs may claim any
 * name.
 */
static bool is_script(uint32_t pid, const char *path)
{
	char arguments[ARGUMENTS_BYTES];
	int fd = procfs__open(pid, "cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, arguments, sizeof(arguments) - 1);

	close_fd(&fd);
	n = max_of(n, (ssize_t)0);
	arguments[n] = '\0';
	for (ssize_t at = 0; at < n; at += strlen(arguments + at) + 1)
		if (!strcmp(arguments + at, path))
			return true;
	return false;
}

/* Symbolic links are followed as they are seen by the process. */
static int find_file(uint32_t pid, const char *path, bool any, struct target_file *ret)
{
	char absolute[2 * PATH_MAX];
	int root, rc;

	if (*path != '/') {
		if (!any && !is_script(pid, path))
			return -ENOENT;
		rc = absolute_path(pid, path, absolute, sizeof(absolute));
		if (rc)
			return rc;
		path = absolute;
	}
	root = procfs__open_root(pid);
	rc = root < 0 ? root : target_file__find(root, path, true, ret);
	close_fd(&root);
	return rc;
}

/* The first `size` bytes, owned; NULL: there are less, or no memory. */
static char *read_text(int fd, size_t size)
{
	char *text = malloc(size + 1);
	size_t done = 0;
	ssize_t n;

	while (text && done < size) {
		n = pread(fd, text + done, size - done, done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			free(text);
			return NULL;
		}
		done += n;
	}
	return text;
}

/* A file that cannot be read, or is no good, has no blocks. */
static int source__new(const struct target_file *file, const struct source_key *key,
		       struct source **ret)
{
	struct source *source = calloc(1, sizeof(*source));
	char *text = NULL;
	int fd = -1;

	if (!source)
		return -ENOMEM;
	source->key = *key;
	if (key->size <= SOURCE_BYTES_MAX)
		fd = target_file__open(file);
	if (fd >= 0)
		text = read_text(fd, key->size);
	close_fd(&fd);
	if (text)
		python_scan__blocks(text, key->size, &source->blocks);
	free(text);
	*ret = source;
	return 0;
}

static struct source *add_source(struct python_sources *sources, const struct target_file *file,
				 const struct source_key *key)
{
	struct source *source;

	if (source__new(file, key, &source))
		return NULL;
	if (sources->bytes > CACHE_BYTES_MAX)
		forget_all(sources);
	HASH_ADD(hh, sources->by_key, key, sizeof(source->key), source);
	if (!source->hh.tbl) {
		source__free(source);
		return NULL;
	}
	sources->bytes += sizeof(*source) + source->blocks.names_cap +
			  source->blocks.cap * sizeof(*source->blocks.list);
	return source;
}

/* NULL: there is none. */
static const struct source *find_source(struct python_sources *sources, uint32_t pid,
					const char *path)
{
	/* A recorded instant has copies of the files as they were. */
	bool any = sources->any_age || procfs__is_recorded();
	struct source *source = NULL;
	struct target_file file;
	struct source_key key;

	if (find_file(pid, path, any, &file))
		return NULL;
	if (!any && !python_source_age__is_older(pid, &file)) {
		target_file__done(&file);
		return NULL;
	}
	key = (struct source_key) {
		.dev = file.dev, .ino = file.ino, .size = file.size, .mtime_ns = file.mtime_ns
	};
	HASH_FIND(hh, sources->by_key, &key, sizeof(key), source);
	if (!source)
		source = add_source(sources, &file, &key);
	target_file__done(&file);
	return source;
}

const char *python_sources__qualname(struct python_sources *sources, uint32_t pid, const char *path,
				     const char *name, uint32_t first_line)
{
	const struct source *source;

	if (!*path || *path == '<' || !strcmp(name, "<module>"))
		return NULL;
	source = find_source(sources, pid, path);
	return source ? python_blocks__qualname(&source->blocks, name, first_line,
						sources->qualname, sizeof(sources->qualname))
		      : NULL;
}
