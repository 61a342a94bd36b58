/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CGROUPS_H
#define BRAID_CGROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* Cgroups of version 2, by the kernel's ids: where a process is, and which the user means. */

#define CGROUP_PATH_BYTES 4096

struct cgroup {		 /* of processes that are known */
	uint64_t id;	 /* 0: not known */
	char *path;	 /* as /proc/PID/cgroup has it */
	char *container; /* NULL: none */
	uint32_t refs;
};

struct cgroups; /* those that processes are in */

struct cgroups *cgroups__new(void);	     /* NULL: out of memory */
void cgroups__free(struct cgroups *cgroups); /* NULL is fine */

/* The cgroup of a process, which may be gone by now: `id` as the kernel half tells, 0 where it did
 * not. To be given back. NULL: not known. */
struct cgroup *cgroups__take(struct cgroups *cgroups, uint64_t id, uint32_t pid);
void cgroups__give(struct cgroups *cgroups, struct cgroup *cgroup); /* NULL is fine */

/* --- what the user means --- */

struct cgroup_place {
	char path[CGROUP_PATH_BYTES]; /* of its directory */
	uint64_t id;
};

/* What is in that cgroup, or below, is the container's, if it is no other's by its cgroup's name.
 * Before the first is taken. */
void cgroups__name_container(struct cgroups *cgroups, const struct cgroup_place *place,
			     const char *name);

/* `text`: a directory, or a path as in /proc/PID/cgroup. -ENOENT, -EINVAL (a hierarchy of version
 * 1), -ENOTSUP (there is no version 2), with the sentence. */
int cgroup_place__find(const char *text, struct cgroup_place *ret, struct err *err);

/* The cgroup of the one container whose id or name is `text` or begins so. -ENOENT, -EEXIST
 * (several: the sentence lists them), -ENOTSUP. `ret_name`: its whole id or name, CONTAINER_BYTES.
 */
int cgroup_place__find_container(const char *text, struct cgroup_place *ret, char *ret_name,
				 struct err *err);

/* The id that the directory has now, which is another one where it was made again; 0: none. */
uint64_t cgroup_place__id_now(const struct cgroup_place *place);

#endif
