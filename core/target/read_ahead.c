// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/read_ahead.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/base/living_task.h"
#include "core/base/sort.h"
#include "core/base/u64map.h"
#include "core/base/util.h"
#include "core/target/procfs.h"

#define LATELY_PERMILLE 10 /* minimum CPU use over a life; below: idle */

struct candidate {
	uint32_t pid;
	bool runs;
	uint64_t usage; /* ticks since the last scan, or per mille of a CPU over its life */
};

struct read_ahead {
	struct read_ahead_opts opts;
	struct candidate *list;
	size_t next, n, cap;
	struct u64map ticks; /* ticks at the last scan, + 1, by PID */
	bool has_looked;
};

int read_ahead__new(const struct read_ahead_opts *opts, struct read_ahead **ret)
{
	struct read_ahead *ahead = calloc(1, sizeof(*ahead));

	if (!ahead)
		return -ENOMEM;
	ahead->opts = *opts;
	*ret = ahead;
	return 0;
}

void read_ahead__free(struct read_ahead *ahead)
{
	if (!ahead)
		return;
	u64map__done(&ahead->ticks);
	free(ahead->list);
	free(ahead);
}

static uint64_t ticks_since_boot(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec * (uint64_t)sysconf(_SC_CLK_TCK);
}

/* Returns the usage of a process. One that began after the last scan counts from its beginning. */
static uint64_t usage_of(const struct read_ahead *ahead, const struct procfs_info *info)
{
	uint64_t now = ticks_since_boot(), before;

	if (!ahead->has_looked)
		return 1000 * info->cpu_ticks /
		       (now > info->start_ticks ? now - info->start_ticks : 1);
	before = u64map__get(&ahead->ticks, info->pid);
	return before && before - 1 <= info->cpu_ticks ? info->cpu_ticks - (before - 1)
						       : info->cpu_ticks;
}

static bool is_idle(const struct read_ahead *ahead, const struct candidate *found)
{
	if (!ahead->has_looked)
		return !ahead->opts.all && !found->runs && found->usage < LATELY_PERMILLE;
	return !found->runs && !found->usage;
}

/* Sets the state of a process whose first thread has ended to that of another one. Returns false if
 * the process has ended. */
static bool is_alive(uint32_t pid, struct procfs_info *info)
{
	uint32_t living;

	if (!state__has_ended(info->state))
		return true;
	living = procfs__living(pid);
	info->state = living == pid ? '\0' : procfs__thread_state(living);
	return info->state && !state__has_ended(info->state);
}

static int add(struct read_ahead *ahead, uint32_t pid, struct u64map *ticks)
{
	struct procfs_info info = { .pid = pid };
	struct candidate found;
	int ret;

	if (procfs__usage(pid, &info) || info.kernel_thread || !is_alive(pid, &info))
		return 0;
	found = (struct candidate) { pid, info.state == 'R', usage_of(ahead, &info) };
	ret = u64map__put(ticks, pid, (uint32_t)info.cpu_ticks + 1);
	if (ret || is_idle(ahead, &found) || ahead->opts.is_read(ahead->opts.ctx, pid) ||
	    !ahead->opts.is_selected(ahead->opts.ctx, pid))
		return ret;
	if (array__reserve(&ahead->list, &ahead->cap, ahead->n + 1, sizeof(*ahead->list)))
		return -ENOMEM;
	ahead->list[ahead->n++] = found;
	return 0;
}

static int by_usage(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->runs != y->runs)
		return x->runs ? -1 : 1;
	if (x->usage != y->usage)
		return x->usage > y->usage ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

int read_ahead__look(struct read_ahead *ahead)
{
	DIR *dir = opendir(procfs__root());
	struct u64map ticks = {};
	struct dirent *entry;
	int ret = 0;

	if (!dir)
		return -errno;
	ahead->n = ahead->next = 0;
	while (!ret && (entry = readdir(dir))) {
		uint32_t pid = strtoul(entry->d_name, NULL, 10);

		if (pid)
			ret = add(ahead, pid, &ticks);
	}
	closedir(dir);
	u64map__done(&ahead->ticks);
	ahead->ticks = ticks;
	ahead->has_looked = true;
	if (ahead->n)
		qsort(ahead->list, ahead->n, sizeof(*ahead->list), by_usage);
	return ret;
}

uint32_t read_ahead__next(struct read_ahead *ahead)
{
	while (ahead->next < ahead->n) {
		uint32_t pid = ahead->list[ahead->next++].pid;

		if (!ahead->opts.is_read(ahead->opts.ctx, pid))
			return pid;
	}
	return 0;
}

bool read_ahead__is_done(const struct read_ahead *ahead)
{
	return ahead->next == ahead->n;
}

size_t read_ahead__count(const struct read_ahead *ahead)
{
	size_t n = 0;

	for (size_t i = ahead->next; i < ahead->n; i++)
		n += !ahead->opts.is_read(ahead->opts.ctx, ahead->list[i].pid);
	return n;
}
