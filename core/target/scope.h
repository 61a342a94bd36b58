/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SCOPE_H
#define BRAID_SCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "core/base/err.h"

/* Which processes are recorded where the user did not name them: all, those of a cgroup or a
 * container, of a user, of a name. What is given must hold, all of it (docs/reference/targets.md).
 */
struct scope;

struct scope_opts { /* NULL: does not matter */
	bool all;
	const char *cgroup;    /* a path, see cgroup_place__find */
	const char *container; /* its id or name, or how that begins */
	const char *name;      /* an extended regular expression; matches comm or command line */
	const char *user;      /* name or number */
};

struct cgroups;

bool scope_opts__any(const struct scope_opts *opts);

/* -EINVAL for what makes no sense, -ENOENT for what is not there, ..., with the sentence. */
int scope__new(const struct scope_opts *opts, struct scope **ret, struct err *err);
void scope__free(struct scope *scope); /* NULL is fine */

/* For the kernel half. */
uint32_t scope__flags(const struct scope *scope); /* SCOPE_* */
uint32_t scope__uid(const struct scope *scope);
uint64_t scope__cgroup(const struct scope *scope); /* id; 0: it is gone, or none is meant */

/* Tells of the container that is meant, if one is. */
void scope__name_container(const struct scope *scope, struct cgroups *cgroups);

/* Returns true for this process, for one that it has forked (@parent is this process), and for one
 * above it that still runs what it ran when the scope was made: a shell, sudo, timeout. PID 1 is
 * none of these. */
bool scope__is_own(const struct scope *scope, uint32_t pid, uint32_t parent);

/* The processes above this one; *ret_n: their number. Borrowed. */
const uint32_t *scope__ancestors(const struct scope *scope, size_t *ret_n);

/* Is a process that is called so one of those, as far as names go? */
bool scope__takes_name(const struct scope *scope, const char *comm, const char *command);

/* Is a process that runs one of those? From /proc. */
bool scope__takes(const struct scope *scope, uint32_t pid);

/* For people: "cgroup /a/b, user nobody". Borrowed. */
const char *scope__text(const struct scope *scope);

/* Looks whether what is named is still there, or has come again. True: something is new: what the
 * user should know is in `ret_note`, and scope__cgroup may be another. */
bool scope__look(struct scope *scope, struct err *ret_note);

/* Whether there is anything for it to find now; else the sentence is in `ret_note`. */
bool scope__finds_any(const struct scope *scope, struct err *ret_note);

#endif
