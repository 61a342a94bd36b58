/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SCOPE_H
#define BRAID_SCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "core/base/err.h"

/* The processes that are recorded if the user does not name them by PID: all, or those of a cgroup
 * or a container, of a user, with a name. All given conditions must hold
 * (docs/reference/targets.md). */
struct scope;

struct scope_opts { /* NULL: any */
	bool all;
	const char *cgroup;    /* a path, see cgroup_place__find */
	const char *container; /* its id or name, or a prefix of one */
	const char *name;      /* an extended regular expression; matches comm or command line */
	const char *user;      /* name or number */
};

struct cgroups;

bool scope_opts__any(const struct scope_opts *opts);

/* Creates the scope. Returns 0; -EINVAL: invalid options; -ENOENT: no such cgroup, container or
 * user; and others, with the message in @err. */
int scope__new(const struct scope_opts *opts, struct scope **ret, struct err *err);
void scope__free(struct scope *scope); /* NULL is fine */

/* --- for the kernel half --- */
uint32_t scope__flags(const struct scope *scope); /* SCOPE_* */
uint32_t scope__uid(const struct scope *scope);
uint64_t scope__cgroup(const struct scope *scope); /* id; 0: it is gone, or none was given */

/* Passes the name of the given container, if any, to @cgroups. */
void scope__name_container(const struct scope *scope, struct cgroups *cgroups);

/* Returns true for braid itself and for a process that it has forked (@parent is braid). Also for a
 * process above braid that still runs the same program as when the scope was made: a shell, sudo,
 * timeout. False for PID 1. */
bool scope__is_own(const struct scope *scope, uint32_t pid, uint32_t parent);

/* Returns the processes above this one; *@ret_n is their number. Borrowed. */
const uint32_t *scope__ancestors(const struct scope *scope, size_t *ret_n);

/* Returns true if the names of a process match the scope. */
bool scope__takes_name(const struct scope *scope, const char *comm, const char *command);

/* Returns true if a running process matches the scope, by /proc. */
bool scope__takes(const struct scope *scope, uint32_t pid);

/* Returns a text for the user: "cgroup /a/b, user www-data". Borrowed. */
const char *scope__text(const struct scope *scope);

/* Checks whether the given cgroup still exists, or exists again. Returns true if that changed:
 * @ret_note has a note for the user, and scope__cgroup() may have changed. */
bool scope__look(struct scope *scope, struct err *ret_note);

/* Returns true if a process matches now; otherwise @ret_note has a message. */
bool scope__finds_any(const struct scope *scope, struct err *ret_note);

#endif
