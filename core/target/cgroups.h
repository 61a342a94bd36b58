/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CGROUPS_H
#define BRAID_CGROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* Cgroups of version 2, by the kernel's ids: the cgroups of processes, and the one that the user
 * names. */

#define CGROUP_PATH_BYTES 4096

struct cgroup {		 /* a cgroup of tracked processes */
	uint64_t id;	 /* 0: unknown */
	char *path;	 /* as in /proc/PID/cgroup */
	char *container; /* NULL: none */
	uint32_t refs;
};

struct cgroups; /* the cgroups of tracked processes */

struct cgroups *cgroups__new(void);	     /* NULL: out of memory */
void cgroups__free(struct cgroups *cgroups); /* NULL is fine */

/* Returns the cgroup of a process, which may have ended. @id is the kernel half's; 0: the kernel
 * half reported none. The caller must release it with cgroups__give(). NULL: unknown. */
struct cgroup *cgroups__take(struct cgroups *cgroups, uint64_t id, uint32_t pid);
void cgroups__give(struct cgroups *cgroups, struct cgroup *cgroup); /* NULL is fine */

/* --- the cgroup that the user names --- */

struct cgroup_place {
	char path[CGROUP_PATH_BYTES]; /* path of the cgroup's directory */
	uint64_t id;
};

/* Assigns the cgroup at @place and all cgroups below @place to the container @name, unless their
 * own names belong to another container. Must be called before the first cgroups__take(). */
void cgroups__name_container(struct cgroups *cgroups, const struct cgroup_place *place,
			     const char *name);

/* Finds a cgroup by @text: a directory, or a path as in /proc/PID/cgroup. Returns 0; -ENOENT;
 * -EINVAL: a hierarchy of version 1; -ENOTSUP: no hierarchy of version 2 is mounted. Errors set the
 * message in @err. */
int cgroup_place__find(const char *text, struct cgroup_place *ret, struct err *err);

/* Finds the cgroup of the only container whose id or name is @text or begins with @text. Sets
 * @ret_name to its full id or name (CONTAINER_BYTES). Returns 0; -ENOENT; -EEXIST: several match,
 * and the message lists them; -ENOTSUP. */
int cgroup_place__find_container(const char *text, struct cgroup_place *ret, char *ret_name,
				 struct err *err);

/* Returns the present id of the directory; 0: none. A directory that was removed and created again
 * has another id. */
uint64_t cgroup_place__id_now(const struct cgroup_place *place);

#endif
