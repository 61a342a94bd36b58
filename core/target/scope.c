// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/scope.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/privilege.h"
#include "core/target/cgroups.h"
#include "core/target/container.h"
#include "core/target/procfs.h"

#define TEXT_BYTES    400
#define ANCESTORS_MAX 64 /* processes further up are recorded like any other */

struct scope {
	uint32_t flags, uid;
	regex_t name;
	struct cgroup_place place;
	bool vanished; /* reported to the user as removed */
	char container[CONTAINER_BYTES];
	char text[TEXT_BYTES];
	uint32_t ancestors[ANCESTORS_MAX];
	struct stat programs[ANCESTORS_MAX]; /* programs of the ancestors; .st_ino 0: unreadable */
	size_t n_ancestors;
	struct stat program; /* braid's own program */
};

bool scope_opts__any(const struct scope_opts *opts)
{
	return opts->all || opts->cgroup || opts->container || opts->name || opts->user;
}

static void describe(struct scope *scope, const char *what, const char *value)
{
	size_t len = strlen(scope->text);

	snprintf(scope->text + len, sizeof(scope->text) - len, "%s%s%s%.200s", len ? ", " : "",
		 what, *value ? " " : "", value);
}

static int set_cgroup(struct scope *scope, const struct scope_opts *opts, struct err *err)
{
	int ret;

	if (opts->cgroup && opts->container)
		return err__set(err, -EINVAL,
				"--cgroup and --container both select a cgroup. Give one of them");
	if (opts->cgroup) {
		ret = *opts->cgroup ? cgroup_place__find(opts->cgroup, &scope->place, err)
				    : err__set(err, -EINVAL,
					       "--cgroup requires a path. Use / for all cgroups");
		describe(scope, "cgroup", opts->cgroup);
	} else {
		ret = *opts->container
			      ? cgroup_place__find_container(opts->container, &scope->place,
							     scope->container, err)
			      : err__set(err, -EINVAL, "--container requires an id or a name");
		describe(scope, "container", scope->container);
	}
	scope->flags |= SCOPE_CGROUP;
	return ret;
}

static int set_user(struct scope *scope, const char *user, struct err *err)
{
	const struct passwd *known = getpwnam(user);
	unsigned long number;
	char *end;

	errno = 0;
	number = strtoul(user, &end, 10);
	if (known)
		scope->uid = known->pw_uid;
	else if (isdigit((unsigned char)*user) && !*end && !errno && number < UINT32_MAX)
		scope->uid = number;
	else
		return err__set(err, -ENOENT,
				"there is no user '%s'. Give a number, or the name of a user of "
				"this system",
				user);
	scope->flags |= SCOPE_USER;
	describe(scope, "user", user);
	return 0;
}

static int set_name(struct scope *scope, const char *name, struct err *err)
{
	char why[128];
	int code;

	if (!*name) /* an unset shell variable; the empty expression would match all names */
		return err__set(
			err, -EINVAL,
			"--name requires an extended regular expression. Use -a for all processes");
	code = regcomp(&scope->name, name, REG_EXTENDED | REG_NOSUB);
	if (code) {
		regerror(code, &scope->name, why, sizeof(why));
		return err__set(err, -EINVAL,
				"--name requires an extended regular expression, not '%s': %s",
				name, why);
	}
	scope->flags |= SCOPE_NAME;
	describe(scope, "name", name);
	return 0;
}

static void read_program(uint32_t pid, struct stat *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%u/exe", procfs__root(), pid);
	if (stat(path, ret))
		*ret = (struct stat) {};
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static void find_ancestors(struct scope *scope)
{
	uint32_t pid = getppid();
	struct procfs_info info;

	read_program(getpid(), &scope->program);
	while (pid > 1 && scope->n_ancestors < ANCESTORS_MAX && !procfs__info(pid, &info, NULL)) {
		read_program(pid, &scope->programs[scope->n_ancestors]);
		scope->ancestors[scope->n_ancestors++] = pid;
		pid = info.parent_pid;
	}
}

const uint32_t *scope__ancestors(const struct scope *scope, size_t *ret_n)
{
	*ret_n = scope->n_ancestors;
	return scope->ancestors;
}

bool scope__is_own(const struct scope *scope, uint32_t pid, uint32_t parent)
{
	struct stat now;

	if (pid == (uint32_t)getpid())
		return true;
	if (parent == (uint32_t)getpid()) {
		read_program(pid, &now);
		return is_same(&now, &scope->program);
	}
	for (size_t i = 0; i < scope->n_ancestors; i++) {
		if (scope->ancestors[i] != pid)
			continue;
		read_program(pid, &now);
		return is_same(&now, &scope->programs[i]);
	}
	return false;
}

int scope__new(const struct scope_opts *opts, struct scope **ret, struct err *err)
{
	struct scope *scope;
	int code = 0;

	if (privilege__is_lent())
		return err__set(err, -EPERM,
				"cannot record processes by name, cgroup or user: braid's "
				"privileges come from its file, and allow only the user's own "
				"processes. Name them with -p");
	scope = calloc(1, sizeof(*scope));
	if (!scope)
		return err__set(err, -ENOMEM, "out of memory");
	scope->flags = SCOPE_WIDE;
	if (opts->name)
		code = set_name(scope, opts->name, err);
	if (!code && opts->user)
		code = set_user(scope, opts->user, err);
	if (!code && (opts->cgroup || opts->container))
		code = set_cgroup(scope, opts, err);
	if (!scope->text[0])
		describe(scope, "all processes", "");
	find_ancestors(scope);
	if (code)
		scope__free(scope);
	else
		*ret = scope;
	return code;
}

void scope__free(struct scope *scope)
{
	if (!scope)
		return;
	if (scope->flags & SCOPE_NAME)
		regfree(&scope->name);
	free(scope);
}

uint32_t scope__flags(const struct scope *scope)
{
	return scope->flags;
}

uint32_t scope__uid(const struct scope *scope)
{
	return scope->uid;
}

void scope__name_container(const struct scope *scope, struct cgroups *cgroups)
{
	if (scope->container[0])
		cgroups__name_container(cgroups, &scope->place, scope->container);
}

uint64_t scope__cgroup(const struct scope *scope)
{
	return scope->place.id;
}

const char *scope__text(const struct scope *scope)
{
	return scope->text;
}

bool scope__takes_name(const struct scope *scope, const char *comm, const char *command)
{
	return !(scope->flags & SCOPE_NAME) || !regexec(&scope->name, comm, 0, NULL, 0) ||
	       !regexec(&scope->name, command, 0, NULL, 0);
}

/* Returns true if the process's cgroup is the given one, or below it. */
static bool is_inside(const struct scope *scope, uint32_t pid)
{
	struct cgroup_place place;
	char path[CGROUP_PATH_BYTES];
	size_t len = strlen(scope->place.path);

	if (procfs__cgroup(pid, path, sizeof(path)) || cgroup_place__find(path, &place, NULL))
		return false;
	while (len > 1 && scope->place.path[len - 1] == '/')
		len--;
	return place.id == scope->place.id ||
	       (!strncmp(place.path, scope->place.path, len) && place.path[len] == '/');
}

bool scope__takes(const struct scope *scope, uint32_t pid)
{
	struct procfs_info info;

	if (procfs__info(pid, &info, NULL) || info.pid != pid ||
	    scope__is_own(scope, pid, info.parent_pid))
		return false;
	if (scope->flags & SCOPE_USER && info.uid != scope->uid)
		return false;
	if (scope->flags & SCOPE_CGROUP && !is_inside(scope, pid))
		return false;
	return scope__takes_name(scope, info.name, info.command);
}

bool scope__look(struct scope *scope, struct err *ret_note)
{
	uint64_t id;

	if (!(scope->flags & SCOPE_CGROUP))
		return false;
	id = cgroup_place__id_now(&scope->place);
	if (!id && !scope->vanished) {
		scope->vanished = true;
		err__set(ret_note, 0,
			 "the cgroup %s was removed. The recording continues, in case it is "
			 "created again",
			 scope->place.path);
		return true;
	}
	if (!id || id == scope->place.id)
		return false;
	scope->vanished = false;
	scope->place.id = id;
	err__set(ret_note, 0, "the cgroup %s was created again and is recorded", scope->place.path);
	return true;
}

bool scope__finds_any(const struct scope *scope, struct err *ret_note)
{
	DIR *dir = opendir(procfs__root());
	struct dirent *entry;
	bool found = scope->flags == SCOPE_WIDE;

	while (!found && dir && (entry = readdir(dir))) {
		uint32_t pid = strtoul(entry->d_name, NULL, 10);

		found = pid && scope__takes(scope, pid);
	}
	if (dir)
		closedir(dir);
	if (!found)
		err__set(ret_note, 0,
			 "no running process matches %s: waiting for one (braid ps lists running "
			 "processes)",
			 scope->text);
	return found;
}
