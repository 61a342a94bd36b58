// SPDX-License-Identifier: GPL-2.0-or-later
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/base/living_task.h"
#include "core/base/util.h"
#include "core/target/cgroup_mount.h"
#include "core/target/cgroups.h"
#include "core/target/container.h"

/* Finds the cgroup or the container that the user names, in the file system of cgroups. */

/* The inode number in cgroupfs is the kernel's id of the cgroup (fs/kernfs/inode.c). */
uint64_t cgroup_place__id_now(const struct cgroup_place *place)
{
	struct statfs fs;
	struct stat st;

	if (stat(place->path, &st) || !S_ISDIR(st.st_mode) || statfs(place->path, &fs) ||
	    fs.f_type != CGROUP2_SUPER_MAGIC)
		return 0;
	return st.st_ino;
}

static bool is_of(const char *path, unsigned magic)
{
	struct statfs fs;

	return !statfs(path, &fs) && (unsigned long)fs.f_type == magic;
}

static int below(const char *mount, const char *text, struct cgroup_place *ret)
{
	int n = snprintf(ret->path, sizeof(ret->path), "%s%s%s", mount, *text == '/' ? "" : "/",
			 text);

	return n < (int)sizeof(ret->path) ? 0 : -ENAMETOOLONG;
}

int cgroup_place__find(const char *text, struct cgroup_place *ret, struct err *err)
{
	char mount[CGROUP_PATH_BYTES];
	int code = cgroup_mount__find(mount, err);

	if (code)
		return code;
	if (strlen(text) >= sizeof(ret->path))
		return err__set(err, -ENAMETOOLONG, "the path of the cgroup is too long");
	if (is_of(text, CGROUP_SUPER_MAGIC))
		return err__set(err, -EINVAL,
				"cannot select %s: it belongs to a cgroup hierarchy of version 1, "
				"which has no ids. Name the cgroup of version 2, below %s",
				text, mount);
	strcpy(ret->path, text);
	ret->id = cgroup_place__id_now(ret);
	if (!ret->id && !below(mount, text, ret))
		ret->id = cgroup_place__id_now(ret);
	return ret->id ? 0
		       : err__set(err, -ENOENT,
				  "there is no cgroup %s: neither a directory of it nor, as in "
				  "/proc/PID/cgroup, one below %s",
				  text, mount);
}

/* --- containers --- */

#define LISTED_MAX 8 /* candidates in a message */

struct search {
	const char *text;
	struct cgroup_place *place;
	char *name;
	unsigned n;	   /* containers that match */
	unsigned n_others; /* containers that do not match */
	bool exact;
	char list[400];
	/* Cgroups with exactly this name that no naming rule covers, whose processes have a mount
	 * namespace of their own. */
	unsigned n_bare;
	uint64_t bare_id;
	char bare_path[CGROUP_PATH_BYTES];
};

static void list(struct search *search, const char *name)
{
	size_t len = strlen(search->list);

	snprintf(search->list + len, sizeof(search->list) - len, "%s%.64s", len ? ", " : "", name);
}

static bool mount_namespace(uint32_t pid, uint64_t *ret)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u/ns/mnt", living_task__of(pid));
	if (stat(path, &st))
		return false;
	*ret = st.st_ino;
	return true;
}

/* Returns true if the first process of the cgroup has a mount namespace that is neither braid's nor
 * init's. Returns false if the process is not accessible (CAP_SYS_PTRACE). If init is not
 * accessible, its namespace is not compared. */
static bool has_own_files(const char *path)
{
	uint64_t own, init, its;
	char name[CGROUP_PATH_BYTES + 16];
	uint32_t pid = 0;
	FILE *procs;

	snprintf(name, sizeof(name), "%s/cgroup.procs", path);
	procs = fopen(name, "re");
	if (procs && fscanf(procs, "%" SCNu32, &pid) != 1)
		pid = 0;
	if (procs)
		fclose(procs);
	return pid && mount_namespace(getpid(), &own) && mount_namespace(pid, &its) && its != own &&
	       !(mount_namespace(1, &init) && its == init);
}

static void consider_bare(struct search *search, const FTSENT *entry, uint64_t id)
{
	if (strcmp(entry->fts_name, search->text) != 0 || !container__may_be_called(search->text) ||
	    !has_own_files(entry->fts_path))
		return;
	search->n_bare++;
	search->bare_id = id;
	snprintf(search->bare_path, sizeof(search->bare_path), "%s", entry->fts_path);
}

static void consider(struct search *search, const FTSENT *entry, uint64_t id)
{
	char name[CONTAINER_BYTES];
	bool exact;

	if (!container__is_cgroup(entry->fts_level > 1 ? entry->fts_parent->fts_name : "",
				  entry->fts_name, name)) {
		consider_bare(search, entry, id);
		return;
	}
	exact = !strcmp(name, search->text);
	if (strncmp(name, search->text, strlen(search->text)) != 0) {
		if (++search->n_others <= LISTED_MAX && !search->n)
			list(search, name);
		return;
	}
	if (search->exact && !exact)
		return;
	if (!search->n || (exact && !search->exact)) {
		search->n = 0;
		search->list[0] = '\0';
	}
	search->exact = exact;
	if (++search->n <= LISTED_MAX)
		list(search, name);
	snprintf(search->name, CONTAINER_BYTES, "%s", name);
	snprintf(search->place->path, sizeof(search->place->path), "%s", entry->fts_path);
	search->place->id = id;
}

int cgroup_place__find_container(const char *text, struct cgroup_place *ret, char *ret_name,
				 struct err *err)
{
	struct search search = { .text = text, .place = ret, .name = ret_name };
	char mount[CGROUP_PATH_BYTES];
	char *const roots[] = { mount, NULL };
	int code = cgroup_mount__find(mount, err);
	FTSENT *entry;
	FTS *tree;

	if (code)
		return code;
	tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	while (tree && (entry = fts_read(tree)))
		if (entry->fts_info == FTS_D && entry->fts_level > 0)
			consider(&search, entry, entry->fts_statp->st_ino);
	if (tree)
		fts_close(tree);
	if (search.n == 1)
		return 0;
	if (!search.n && search.n_bare == 1) {
		snprintf(ret->path, sizeof(ret->path), "%s", search.bare_path);
		ret->id = search.bare_id;
		snprintf(ret_name, CONTAINER_BYTES, "%s", text);
		return 0;
	}
	if (!search.n && search.n_bare)
		return err__set(
			err, -EEXIST,
			"%u cgroups with different files are called %s. Choose one with --cgroup",
			search.n_bare, text);
	if (search.n)
		return err__set(err, -EEXIST,
				"%u containers match '%s...': %s. Give more of the id or name",
				search.n, text, search.list);
	return err__set(err, -ENOENT, "there is no container '%s': the cgroups below %s have %s%s",
			text, mount, search.n_others ? search.list : "none",
			search.n_others > LISTED_MAX ? ", and others" : "");
}
