// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/file_beside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not the name with a suffix, which could be too long. */
#define NAME ".braid-XXXXXX"

int file_beside__create(const char *path, char **ret_beside)
{
	const char *slash = strrchr(path, '/');
	int dir_len = slash ? slash + 1 - path : 0, fd;
	char *beside;

	if (asprintf(&beside, "%.*s" NAME, dir_len, path) < 0)
		return -ENOMEM;
	fd = mkostemp(beside, O_CLOEXEC);
	if (fd < 0) {
		fd = -errno;
		free(beside);
		return fd;
	}
	*ret_beside = beside;
	return fd;
}
