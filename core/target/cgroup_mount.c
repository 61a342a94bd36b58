// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/cgroup_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

/* Replaces octal escapes: mountinfo has "\040" for a blank. */
static void unescape(char *text)
{
	char *to = text;

	for (char *from = text; *from; from++) {
		if (from[0] == '\\' && strspn(from + 1, "01234567") >= 3) {
			*to++ = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 |
				       (from[3] - '0'));
			from += 3;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
}

int cgroup_mount__find(char ret[CGROUP_PATH_BYTES], struct err *err)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	while (!found && mounts && getline(&line, &size, mounts) > 0) {
		const char *type = strstr(line, " - ");

		if (!type || strncmp(type, " - cgroup2 ", 11) != 0 ||
		    sscanf(line, "%*s %*s %*s %*s %4095s", ret) != 1)
			continue;
		unescape(ret);
		found = true;
	}
	free(line);
	if (mounts)
		fclose(mounts);
	return found ? 0
		     : err__set(err, -ENOTSUP,
				"cannot find cgroups: no hierarchy of version 2 is mounted. Use "
				"mount -t cgroup2 none /sys/fs/cgroup");
}

#define FILEID_KERNFS 0xfe /* include/linux/exportfs.h */

int cgroup_mount__path_of(const char *mount, uint64_t id, char ret[CGROUP_PATH_BYTES])
{
	union {
		struct file_handle handle;
		char bytes[sizeof(struct file_handle) + sizeof(id)];
	} file = { .handle = { .handle_bytes = sizeof(id), .handle_type = FILEID_KERNFS } };
	int root = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd, code = 0;
	size_t len = strlen(mount);
	char link[64], found[CGROUP_PATH_BYTES];
	ssize_t n;

	if (root < 0)
		return -errno;
	memcpy(file.handle.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(root, &file.handle, O_PATH | O_CLOEXEC);
	if (fd < 0)
		code = -errno;
	close(root);
	if (code)
		return code;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, found, sizeof(found) - 1);
	close(fd);
	if (n < (ssize_t)len || memcmp(found, mount, len) != 0)
		return -ESTALE;
	found[n] = '\0';
	strcpy(ret, n > (ssize_t)len ? found + len : "/");
	return strstr(ret, " (deleted)") ? -ESTALE : 0;
}
