// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/debug_package.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/target_file.h"
#include "core/base/util.h"

#define APT_MAX_MS     2000
#define CANDIDATES_MAX 3

typedef char package_text[DEBUG_PACKAGE_BYTES];

struct owner {
	package_text package, version, source;
};

/* --- files of dpkg, which are root's --- */

struct text {
	char *data; /* NULL: not there, or empty */
	size_t size;
};

static struct text map_text(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct text text = {};
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0) {
		text.size = st.st_size;
		text.data = mmap(NULL, text.size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (text.data == MAP_FAILED)
			text.data = NULL;
	}
	close_fd(&fd);
	return text;
}

static void unmap_text(struct text *text)
{
	if (text->data)
		munmap(text->data, text->size);
}

static bool has_line(const struct text *text, const char *line)
{
	size_t len = strlen(line);
	const char *at = text->data, *end = text->data + text->size;

	while (at && (at = memmem(at, end - at, line, len))) {
		if ((at == text->data || at[-1] == '\n') && (at + len == end || at[len] == '\n'))
			return true;
		at += len;
	}
	return false;
}

/* Where /lib leads to /usr/lib, packages may know a file by its old path. */
static bool lists_file(const char *list, const char *path)
{
	struct text text = map_text(list);
	bool found =
		has_line(&text, path) || (!strncmp(path, "/usr/", 5) && has_line(&text, path + 4));

	unmap_text(&text);
	return found;
}

static int find_owner(const char *root, const char *path, package_text ret)
{
	static const char end[] = ".list";
	char dir_path[PATH_MAX], list[PATH_MAX + NAME_MAX + 2];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(dir_path, sizeof(dir_path), "%s/var/lib/dpkg/info", root);
	dir = opendir(dir_path);
	while (dir && !found && (entry = readdir(dir))) {
		size_t len = strlen(entry->d_name);

		if (len < sizeof(end) || strcmp(entry->d_name + len - strlen(end), end) != 0)
			continue;
		snprintf(list, sizeof(list), "%s/%s", dir_path, entry->d_name);
		found = lists_file(list, path);
		if (found) /* "libc6:amd64.list" */
			snprintf(ret, sizeof(package_text), "%.*s",
				 (int)min_of(strcspn(entry->d_name, ":"), len - strlen(end)),
				 entry->d_name);
	}
	if (dir)
		closedir(dir);
	return found ? 0 : -ENOENT;
}

/* A field of a paragraph; "" if it has none. */
static void get_field(const char *at, const char *end, const char *name, package_text ret)
{
	size_t len = strlen(name);

	*ret = '\0';
	while (at && at < end) {
		const char *eol = memchr(at, '\n', end - at) ?: end;

		if ((size_t)(eol - at) > len + 1 && !memcmp(at, name, len) && at[len] == ':') {
			for (at += len + 1; at < eol && *at == ' ';)
				at++;
			snprintf(ret, sizeof(package_text), "%.*s", (int)(eol - at), at);
			return;
		}
		at = eol + 1;
	}
}

/* The paragraph of an installed package; NULL: there is none. */
static const char *find_installed(const struct text *status, const char *package,
				  const char **ret_end)
{
	const char *at = status->data, *end = status->data + status->size;

	while (at && at < end) {
		const char *next = memmem(at, end - at, "\n\n", 2);
		package_text name, state;

		*ret_end = next ?: end;
		get_field(at, *ret_end, "Package", name);
		if (!strcmp(name, package)) {
			get_field(at, *ret_end, "Status", state);
			if (!strcmp(state, "install ok installed"))
				return at;
		}
		at = next ? next + 2 : end;
	}
	return NULL;
}

static int read_owner(const struct text *status, struct owner *owner)
{
	const char *end, *at = find_installed(status, owner->package, &end);

	if (!at)
		return -ENOENT;
	get_field(at, end, "Version", owner->version);
	get_field(at, end, "Source", owner->source);
	owner->source[strcspn(owner->source, " ")] = '\0'; /* "name (version)" */
	return *owner->version ? 0 : -ENOENT;
}

/* --- what apt knows --- */

/* Until the program ends, or the time is over; then it is killed. */
static size_t read_output(int fd, pid_t pid, char *buf, size_t size)
{
	struct pollfd polled = { .fd = fd, .events = POLLIN };
	uint64_t end_ns = now_ns() + APT_MAX_MS * 1000000ULL, now;
	size_t len = 0;
	ssize_t got = 1;

	while (got > 0 && len + 1 < size && (now = now_ns()) < end_ns) {
		got = poll(&polled, 1, (end_ns - now) / 1000000 + 1);
		if (got > 0)
			got = read(fd, buf + len, size - len - 1);
		len += max_of(got, 0);
	}
	buf[len] = '\0';
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return len;
}

/* "apt-cache show NAME=VERSION...": the paragraphs of those that there are. */
static size_t show(const char *apt_cache, char *const *argv, char *buf, size_t size)
{
	char *const environment[] = { "LC_ALL=C", "PATH=/usr/bin:/bin", NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int fds[2];
	size_t len = 0;
	pid_t pid;

	*buf = '\0';
	if (pipe2(fds, O_CLOEXEC))
		return 0;
	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (!posix_spawn(&pid, apt_cache, &actions, &attributes, argv, environment)) {
		close_fd(&fds[1]);
		len = read_output(fds[0], pid, buf, size);
	}
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	close_fd(&fds[1]);
	close_fd(&fds[0]);
	return len;
}

static int find_available(const char *apt_cache, const package_text *names, size_t n,
			  const char *version, package_text ret)
{
	char words[CANDIDATES_MAX][2 * sizeof(package_text)],
		lines[CANDIDATES_MAX][sizeof(package_text) + 16];
	char *argv[3 + CANDIDATES_MAX] = { "apt-cache", "show" }, *output = malloc(1 << 16);
	struct text text = { output, 0 };
	int code = -ENOENT;

	for (size_t i = 0; i < n; i++) {
		snprintf(words[i], sizeof(words[i]), "%s=%s", names[i], version);
		snprintf(lines[i], sizeof(lines[i]), "Package: %s", names[i]);
		argv[2 + i] = words[i];
	}
	if (output)
		text.size = show(apt_cache, argv, output, 1 << 16);
	for (size_t i = 0; code && i < n && text.size; i++) {
		if (!has_line(&text, lines[i]))
			continue;
		memcpy(ret, names[i], sizeof(package_text));
		code = 0;
	}
	free(output);
	return code;
}

/* --- */

static bool is_ours(const struct elf_file *file, const char *root)
{
	struct target_file found = TARGET_FILE_NONE;
	int root_fd = open(*root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	bool same = root_fd >= 0 && file->fd >= 0 && !fstat(file->fd, &st) &&
		    !target_file__find(root_fd, file->path, true, &found) &&
		    found.dev == st.st_dev && found.ino == st.st_ino;

	target_file__done(&found);
	close_fd(&root_fd);
	return same;
}

int debug_package__find(const struct elf_file *file, const struct debug_package_places *places,
			char ret[DEBUG_PACKAGE_BYTES])
{
	static const char *const ends[] = { "-dbgsym", "-dbg" };
	package_text names[CANDIDATES_MAX];
	char path[PATH_MAX];
	struct owner owner;
	struct text status;
	const char *end;
	size_t n = 0;
	int code;

	if (!is_ours(file, places->root) || find_owner(places->root, file->path, owner.package))
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/var/lib/dpkg/status", places->root);
	status = map_text(path);
	code = read_owner(&status, &owner);
	for (size_t i = 0; !code && i < ARRAY_SIZE(ends); i++)
		snprintf(names[n++], sizeof(package_text), "%.100s%s", owner.package, ends[i]);
	if (!code && *owner.source && strcmp(owner.source, owner.package) != 0)
		snprintf(names[n++], sizeof(package_text), "%.100s-dbg", owner.source);
	for (size_t i = 0; !code && i < n; i++)
		if (find_installed(&status, names[i], &end))
			code = -ENOENT; /* it has not helped */
	unmap_text(&status);
	return code ? code : find_available(places->apt_cache, names, n, owner.version, ret);
}
