// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/replay/target_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/util.h"

#define FILE_BYTES_MAX (1 << 20)  /* bytes of a source, or of a file in /proc */
#define MAP_BYTES_MAX  (16 << 20) /* bytes of a perf map ... */
#define MAP_WHOLE_MAX  (32 << 10) /* ... that is stored whole */
#define MAP_NEAR       (16 << 10) /* bytes; others: distance of entries from a native frame */

static char *slurp(const char *path, size_t max, size_t *ret_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = fd < 0 ? NULL : malloc(max + 1);
	size_t size = 0;
	ssize_t n = 1;

	while (text && n > 0 && size < max) {
		n = read(fd, text + size, max - size);
		size += n > 0 ? n : 0;
	}
	close_fd(&fd);
	if (text)
		text[size] = '\0';
	*ret_size = size;
	return text;
}

int target_files__add_proc(struct pack *pack, pid_t pid, const char *name)
{
	char path[64], *text, *field, *rest;
	size_t size;
	int code;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	text = slurp(path, FILE_BYTES_MAX, &size);
	if (!text)
		return -errno;
	if (!strcmp(name, "status") && (field = strstr(text, "\nUid:"))) {
		rest = strchr(field + 1, '\n'); /* the replay has another user */
		memmove(field, rest, strlen(rest) + 1);
		size = strlen(text);
	}
	if (!strcmp(name, "stat") && (field = strrchr(text, ')'))) {
		/* The start time, field 22, is of another boot. */
		for (int i = 2; i < 22 && field; i++)
			field = strchr(field + 1, ' ');
		rest = field ? strchr(field + 1, ' ') : NULL;
		if (rest) {
			memmove(field + 2, rest, strlen(rest) + 1);
			field[1] = '1';
		}
		size = strlen(text);
	}
	code = pack__add(pack, PACK_FILE, name, pid, 0, text, size);
	free(text);
	return code;
}

int target_files__add_source(struct pack *pack, pid_t pid, const char *path)
{
	char full[PATH_MAX + 64], name[PACK_NAME_BYTES];
	struct stat st;
	size_t size;
	char *text;
	int code;

	snprintf(full, sizeof(full), "/proc/%d/root%s", pid, path);
	if (path[0] != '/' || stat(full, &st) || !S_ISREG(st.st_mode) ||
	    st.st_size > FILE_BYTES_MAX)
		return 0;
	snprintf(name, sizeof(name), "root%s", path);
	text = slurp(full, FILE_BYTES_MAX, &size);
	code = text ? pack__add(pack, PACK_FILE, name, pid, 0, text, size) : -errno;
	free(text);
	return code;
}

static bool is_near(const char *line, const uint64_t *addresses, size_t n)
{
	uint64_t start, size;

	if (sscanf(line, "%" SCNx64 " %" SCNx64, &start, &size) != 2)
		return false;
	for (size_t i = 0; i < n; i++)
		if (addresses[i] + MAP_NEAR >= start && addresses[i] < start + size + MAP_NEAR)
			return true;
	return false;
}

int target_files__add_perf_map(struct pack *pack, pid_t pid, const uint64_t *addresses, size_t n)
{
	char path[128], name[64], *text, *to;
	size_t size;
	int code;

	snprintf(name, sizeof(name), "root/tmp/perf-%d.map", pid);
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	text = slurp(path, MAP_BYTES_MAX, &size);
	if (!text)
		return 0;
	to = text;
	for (char *line = text, *next; size > MAP_WHOLE_MAX && *line; line = next) {
		next = line + strcspn(line, "\n");
		next += *next == '\n';
		if (!is_near(line, addresses, n))
			continue;
		memmove(to, line, next - line);
		to += next - line;
	}
	size = size > MAP_WHOLE_MAX ? (size_t)(to - text) : size;
	code = pack__add(pack, PACK_FILE, name, pid, 0, text, size);
	free(text);
	return code;
}
