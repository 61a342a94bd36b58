// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/unread_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

#include "core/base/living_task.h"
#include "core/base/privilege.h"
#include "core/base/util.h"

#define UNREAD_MAX 4096 /* limit, as a target may map any number */

struct unread {
	UT_hash_handle hh;
	struct unread_key {
		uint64_t inode;
		uint32_t dev_major, dev_minor;
	} key;
	char *path; /* NULL: out of memory */
	uint32_t pid;
	int code;
};

struct unread_files {
	struct unread *by_key; /* in the order of insertion */
	uint32_t privileges;   /* privileges any of which would help with the first file; 0: none */
};

struct unread_files *unread_files__new(void)
{
	return calloc(1, sizeof(struct unread_files));
}

void unread_files__free(struct unread_files *files)
{
	struct unread *unread, *next;

	if (!files)
		return;
	HASH_ITER (hh, files->by_key, unread, next) {
		HASH_DEL(files->by_key, unread);
		free(unread->path);
		free(unread);
	}
	free(files);
}

/* Returns the privileges that the open needs. The process's root directory gives access to all
 * files except deleted and hidden ones. @code is the error of the last attempt, by the path in
 * braid's root. */
static uint32_t privileges_for(uint32_t pid, int code)
{
	int fd;

	if (code == -EACCES)
		return 1U << PRIVILEGE_READ;
	fd = procfs__open_root(pid);
	if (fd < 0)
		return 1U << PRIVILEGE_PROCESSES;
	close(fd);
	return 1U << PRIVILEGE_FILES;
}

void unread_files__add(struct unread_files *files, uint32_t pid,
		       const struct procfs_mapping *mapping, int code)
{
	struct unread_key key = { mapping->inode, mapping->dev_major, mapping->dev_minor };
	struct procfs_info info;
	struct unread *unread;

	HASH_FIND(hh, files->by_key, &key, sizeof(key), unread);
	if (unread || code == -EINVAL /* not a regular file */ || code == -EINTR ||
	    HASH_COUNT(files->by_key) == UNREAD_MAX || procfs__info(pid, &info, NULL) ||
	    state__has_ended(info.state))
		return;
	unread = calloc(1, sizeof(*unread));
	if (!unread)
		return;
	unread->key = key;
	unread->path = strdup(mapping->path);
	unread->pid = pid;
	unread->code = code;
	HASH_ADD(hh, files->by_key, key, sizeof(unread->key), unread);
	if (unread == files->by_key)
		files->privileges = privilege__missing(privileges_for(pid, code));
}

void unread_files__remove(struct unread_files *files, const struct procfs_mapping *mapping)
{
	struct unread_key key = { mapping->inode, mapping->dev_major, mapping->dev_minor };
	struct unread *unread, *first = files->by_key;

	HASH_FIND(hh, files->by_key, &key, sizeof(key), unread);
	if (!unread)
		return;
	HASH_DEL(files->by_key, unread);
	free(unread->path);
	free(unread);
	if (unread == first && files->by_key)
		files->privileges =
			privilege__missing(privileges_for(files->by_key->pid, files->by_key->code));
}

unsigned unread_files__count(const struct unread_files *files)
{
	return HASH_COUNT(files->by_key);
}

const char *unread_files__first(const struct unread_files *files, uint32_t *ret_pid)
{
	*ret_pid = files->by_key ? files->by_key->pid : 0;
	return files->by_key && files->by_key->path ? files->by_key->path : "";
}

void unread_files__why(const struct unread_files *files, char *ret, size_t size)
{
	if (files->privileges)
		privilege__lacks(files->privileges, ret, size);
	else
		snprintf(ret, size, "%s", files->by_key ? strerror(-files->by_key->code) : "");
}
