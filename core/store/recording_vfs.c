// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/store/recording_vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/util.h"
#include "core/store/recording_file.h"

#define NAME "braid"

static sqlite3_vfs *base;

#define JOURNAL "-journal"

static size_t without(const char *name, const char *suffix)
{
	size_t len = strlen(name), suffix_len = strlen(suffix);

	return len > suffix_len && !strcmp(name + len - suffix_len, suffix) ? len - suffix_len : 0;
}

/* Returns true if @name is a journal of the user, or of the recording's owner: SQLite gives its
 * journals that owner. */
static bool is_own_journal(const char *name)
{
	size_t len = without(name, JOURNAL);
	char *recording = len ? strndup(name, len) : NULL;
	struct stat theirs, st;
	bool own = false;
	int fd;

	if (!recording)
		return false;
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	if (fd >= 0 && !fstat(fd, &st) && !stat(recording, &theirs))
		own = (st.st_uid == geteuid() || st.st_uid == theirs.st_uid) &&
		      recording_file__is_journal(fd);
	close_fd(&fd);
	free(recording);
	return own;
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
		    int *ret_flags)
{
	struct stat st;

	(void)vfs;
	if (flags & SQLITE_OPEN_MAIN_JOURNAL && flags & SQLITE_OPEN_CREATE) {
		if (!lstat(name, &st)) {
			file->pMethods = NULL;
			errno = EEXIST;
			return SQLITE_CANTOPEN;
		}
		flags |= SQLITE_OPEN_EXCLUSIVE;
	}
	return base->xOpen(base, name, file, flags, ret_flags);
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
	(void)vfs;
	*ret = 0;
	if (without(name, "-wal") || (without(name, JOURNAL) && !is_own_journal(name)))
		return SQLITE_OK;
	return base->xAccess(base, name, flags, ret);
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs;
	return is_own_journal(name) ? base->xDelete(base, name, sync) : SQLITE_OK;
}

const char *recording_vfs__name(void)
{
	static sqlite3_vfs ours;

	if (base)
		return NAME;
	base = sqlite3_vfs_find(NULL);
	if (!base)
		return NULL;
	ours = *base;
	ours.zName = NAME;
	ours.pNext = NULL;
	ours.xOpen = vfs_open;
	ours.xAccess = vfs_access;
	ours.xDelete = vfs_delete;
	if (sqlite3_vfs_register(&ours, false)) {
		base = NULL;
		return NULL;
	}
	return NAME;
}
