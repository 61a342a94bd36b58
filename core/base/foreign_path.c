// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/foreign_path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/sudo_user.h"

#define LINKS_MAX 40 /* the kernel's limit, MAXSYMLINKS */

/* Returns the length of the directory in @path, with its slash. */
static int dir_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 - path : 0;
}

static bool is_trusted(uid_t uid)
{
	return uid == geteuid() || !uid || sudo_user__is(uid);
}

/* A directory with the bit S_IWGRP is private: many systems give each user a group of its own. With
 * the sticky bit as well, the directory is meant for several users. */
bool foreign_path__is_private(const char *path)
{
	struct stat st;
	char *dir;
	bool found;

	if (asprintf(&dir, "%.*s.", dir_length(path), path) < 0)
		return false;
	found = !stat(dir, &st);
	free(dir);
	return found && is_trusted(st.st_uid) && !(st.st_mode & S_IWOTH) &&
	       !(st.st_mode & S_IWGRP && st.st_mode & S_ISVTX);
}

bool foreign_path__is_foreign(const char *path, const struct stat *st)
{
	return !is_trusted(st->st_uid) && !foreign_path__is_private(path);
}

/* Replaces *@path by the target of the link that lies there. */
static int follow(char **path)
{
	char target[PATH_MAX], *next;
	ssize_t n = readlink(*path, target, sizeof(target));

	if (n < 0)
		return -errno;
	if (n == sizeof(target))
		return -ENAMETOOLONG;
	if (asprintf(&next, "%.*s%.*s", *target == '/' ? 0 : dir_length(*path), *path, (int)n,
		     target) < 0)
		return -ENOMEM;
	free(*path);
	*path = next;
	return 0;
}

int foreign_path__resolve(const char *path, char **ret)
{
	char *at = strdup(path);
	int code = at ? 0 : -ENOMEM;
	struct stat st;

	for (int i = 0; !code && !lstat(at, &st) && S_ISLNK(st.st_mode); i++) {
		if (i == LINKS_MAX)
			code = -ELOOP;
		else if (foreign_path__is_foreign(at, &st))
			code = -EACCES;
		else
			code = follow(&at);
	}
	if (code)
		free(at);
	else
		*ret = at;
	return code;
}
