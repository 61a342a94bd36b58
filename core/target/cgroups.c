// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/cgroups.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "core/base/util.h"
#include "core/target/cgroup_mount.h"
#include "core/target/container.h"
#include "core/target/procfs.h"

struct entry {
	struct cgroup cgroup; /* must be first */
	UT_hash_handle hh;    /* by id; only cgroups with an id */
};

struct cgroups {
	struct entry *by_id;
	char mount[CGROUP_PATH_BYTES];	    /* "": none */
	char named_path[CGROUP_PATH_BYTES]; /* path of the container that the user named; "": none
					     */
	char named[CONTAINER_BYTES];
};

struct cgroups *cgroups__new(void)
{
	struct cgroups *cgroups = calloc(1, sizeof(*cgroups));

	if (cgroups && cgroup_mount__find(cgroups->mount, NULL))
		cgroups->mount[0] = '\0';
	return cgroups;
}

static void entry__free(struct entry *entry)
{
	free(entry->cgroup.path);
	free(entry->cgroup.container);
	free(entry);
}

void cgroups__free(struct cgroups *cgroups)
{
	struct entry *entry, *next;

	if (!cgroups)
		return;
	HASH_ITER (hh, cgroups->by_id, entry, next) {
		HASH_DEL(cgroups->by_id, entry);
		entry__free(entry);
	}
	free(cgroups);
}

void cgroups__give(struct cgroups *cgroups, struct cgroup *cgroup)
{
	struct entry *entry = (struct entry *)cgroup; /* its first member */

	if (!cgroup || --cgroup->refs)
		return;
	if (cgroup->id)
		HASH_DEL(cgroups->by_id, entry);
	entry__free(entry);
}

void cgroups__name_container(struct cgroups *cgroups, const struct cgroup_place *place,
			     const char *name)
{
	size_t mount = strlen(cgroups->mount);

	if (!mount || strncmp(place->path, cgroups->mount, mount) != 0)
		return;
	snprintf(cgroups->named_path, sizeof(cgroups->named_path), "%s", place->path + mount);
	snprintf(cgroups->named, sizeof(cgroups->named), "%s", name);
}

static bool is_of_named(const struct cgroups *cgroups, const char *path)
{
	size_t len = strlen(cgroups->named_path);

	return len && !strncmp(path, cgroups->named_path, len) && (!path[len] || path[len] == '/');
}

static struct cgroup *add(struct cgroups *cgroups, uint64_t id, const char *path)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	char container[CONTAINER_BYTES];

	if (!entry)
		return NULL;
	entry->cgroup.id = id;
	entry->cgroup.refs = 1;
	entry->cgroup.path = strdup(path);
	if (container__of_cgroup(path, container))
		entry->cgroup.container = strdup(container);
	else if (is_of_named(cgroups, path))
		entry->cgroup.container = strdup(cgroups->named);
	if (!entry->cgroup.path) {
		entry__free(entry);
		return NULL;
	}
	procfs__make_printable(entry->cgroup.path, strlen(entry->cgroup.path));
	if (id)
		HASH_ADD(hh, cgroups->by_id, cgroup.id, sizeof(id), entry);
	return &entry->cgroup;
}

/* Returns the id of the cgroup at @path; 0 if the path leads out of the mounted hierarchy, as for
 * other cgroup namespaces. */
static uint64_t id_of_path(const struct cgroups *cgroups, const char *path)
{
	struct cgroup_place place;
	size_t len = strlen(cgroups->mount);

	if (!len || strstr(path, "/..") || len + strlen(path) >= sizeof(place.path))
		return 0;
	memcpy(place.path, cgroups->mount, len);
	strcpy(place.path + len, path);
	return cgroup_place__id_now(&place);
}

struct cgroup *cgroups__take(struct cgroups *cgroups, uint64_t id, uint32_t pid)
{
	char path[CGROUP_PATH_BYTES];
	struct entry *entry = NULL;

	if (!id || cgroup_mount__path_of(cgroups->mount, id, path)) {
		if (procfs__cgroup(pid, path, sizeof(path)))
			return NULL;
		id = id ?: id_of_path(cgroups, path);
	}
	if (id)
		HASH_FIND(hh, cgroups->by_id, &id, sizeof(id), entry);
	if (!entry)
		return add(cgroups, id, path);
	entry->cgroup.refs++;
	return &entry->cgroup;
}
