// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/running.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/living_task.h"

#define HINTS_MAX 3

int running__each(int (*fn)(void *ctx, const struct procfs_info *info), void *ctx)
{
	DIR *dir = opendir(procfs__root());
	struct procfs_info info;
	struct dirent *entry;
	struct err err = {};
	int ret = 0;

	if (!dir)
		return -errno;
	while (!ret && (entry = readdir(dir))) {
		uint32_t pid = strtoul(entry->d_name, NULL, 10);

		if (!pid || pid == (uint32_t)getpid() || procfs__info(pid, &info, &err) ||
		    info.kernel_thread || state__has_ended(info.state))
			continue;
		ret = fn(ctx, &info);
	}
	closedir(dir);
	return ret;
}

struct hint {
	const char *name;
	uint32_t pids[HINTS_MAX];
	size_t n; /* number found; at most HINTS_MAX of them are in `pids` */
};

/* Compares @name with the name of the program in @command, up to a blank or a colon. */
static bool runs(const char *command, const char *name)
{
	size_t len = strcspn(command, " :");
	const char *slash = memrchr(command, '/', len);
	const char *program = slash ? slash + 1 : command;

	len -= program - command;
	return strlen(name) == len && !memcmp(program, name, len);
}

static int add_hint(void *ctx, const struct procfs_info *info)
{
	struct hint *hint = ctx;

	if (strcmp(info->name, hint->name) != 0 && !runs(info->command, hint->name))
		return 0;
	if (hint->n < HINTS_MAX)
		hint->pids[hint->n] = info->pid;
	hint->n++;
	return 0;
}

void running__hint(const char *name, char *ret, size_t size)
{
	struct hint hint = { .name = name };
	size_t used;

	ret[0] = '\0';
	if (!*name || running__each(add_hint, &hint) || !hint.n)
		return;
	if (hint.n > HINTS_MAX) {
		snprintf(ret, size, "%zu processes run %s: did you mean --name %s?", hint.n, name,
			 name);
		return;
	}
	used = snprintf(ret, size, "did you mean -p %u", hint.pids[0]);
	for (size_t i = 1; i < hint.n && used < size; i++)
		used += snprintf(ret + used, size - used, ",%u", hint.pids[i]);
	if (used < size)
		snprintf(ret + used, size - used, "?");
}

bool running__is_pid(const char *text)
{
	struct procfs_info info = {};

	return *text && strlen(text) < 10 && !text[strspn(text, "0123456789")] &&
	       !procfs__usage(strtoul(text, NULL, 10), &info);
}
