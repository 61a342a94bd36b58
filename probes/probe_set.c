// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/probe_set.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/living_task.h"
#include "core/base/util.h"

struct group { /* points in one file, with one program */
	const struct bpf_program *program;
	struct elf_file *file; /* owned: opened again from the same file */
	struct probe_point *points;
	size_t n;
};

struct member {
	pid_t pid; /* -1: every process */
	struct probe_links *links;
};

struct probe_set {
	bool everywhere, over;
	struct group *groups;
	size_t n_groups, cap_groups;
	struct member members[PROBE_SET_MEMBERS_MAX];
	size_t n_members;
	uint64_t joins_since_ns; /* CLOCK_MONOTONIC; start of a period ... */
	size_t n_joins;		 /* ... in which n_joins processes joined */

	/* A thread detaches the links of processes that left, as each takes the kernel up to 1
	 * s. */
	pthread_t reaper;
	bool reaping;
	pthread_mutex_t lock; /* protects the following members */
	pthread_cond_t wake;
	struct probe_links **left;
	size_t n_left, cap_left;
	bool stop;
};

/* --- links of processes that left --- */

static void *reap(void *arg)
{
	struct probe_set *set = arg;
	struct probe_links **list;
	size_t n;

	pthread_mutex_lock(&set->lock);
	while (!set->stop || set->n_left) {
		if (!set->n_left) {
			pthread_cond_wait(&set->wake, &set->lock);
			continue;
		}
		list = set->left;
		n = set->n_left;
		set->left = NULL;
		set->n_left = set->cap_left = 0;
		pthread_mutex_unlock(&set->lock);
		probe_links__detach_all(list, n);
		for (size_t i = 0; i < n; i++)
			probe_links__free(list[i]);
		free(list);
		pthread_mutex_lock(&set->lock);
	}
	pthread_mutex_unlock(&set->lock);
	return NULL;
}

static void leave_to_reaper(struct probe_set *set, struct probe_links *links)
{
	bool taken;

	if (!set->reaping)
		set->reaping = !pthread_create(&set->reaper, NULL, reap, set);
	pthread_mutex_lock(&set->lock);
	taken = set->reaping && !array__reserve(&set->left, &set->cap_left, set->n_left + 1,
						sizeof(struct probe_links *));
	if (taken)
		set->left[set->n_left++] = links;
	pthread_cond_signal(&set->wake);
	pthread_mutex_unlock(&set->lock);
	if (!taken)
		probe_links__free(links);
}

static void stop_reaper(struct probe_set *set)
{
	if (!set->reaping)
		return;
	pthread_mutex_lock(&set->lock);
	set->stop = true;
	pthread_cond_signal(&set->wake);
	pthread_mutex_unlock(&set->lock);
	pthread_join(set->reaper, NULL);
	set->reaping = set->stop = false;
}

/* --- members --- */

static int attach_groups(struct probe_set *set, struct member *member, size_t first,
			 struct err *err)
{
	int ret = 0;

	for (size_t i = first; !ret && i < set->n_groups; i++)
		ret = probe_links__attach(member->links, set->groups[i].program, member->pid,
					  set->groups[i].points, set->groups[i].n, err);
	return ret;
}

static int add_member(struct probe_set *set, pid_t pid, struct err *err)
{
	struct member *member = &set->members[set->n_members];
	int ret;

	*member = (struct member) { .pid = pid, .links = probe_links__new() };
	if (!member->links)
		return err__set(err, -ENOMEM, "out of memory");
	ret = attach_groups(set, member, 0, err);
	if (ret) {
		probe_links__free(member->links);
		return ret == -ESRCH ? 0 : ret;
	}
	set->n_members++;
	return 0;
}

static struct member *find(const struct probe_set *set, pid_t pid)
{
	for (size_t i = 0; i < set->n_members; i++)
		if (set->members[i].pid == pid)
			return (struct member *)&set->members[i];
	return NULL;
}

bool probe_set__has(const struct probe_set *set, pid_t pid)
{
	return find(set, pid) != NULL;
}

pid_t probe_set__member(const struct probe_set *set, size_t n)
{
	return n < set->n_members ? set->members[n].pid : 0;
}

/* Returns true if new processes are so frequent that separate links cost more than they save. */
static bool is_crowded(struct probe_set *set)
{
	uint64_t now = now_ns();

	if (now >= set->joins_since_ns + PROBE_SET_JOINS_NS) {
		set->joins_since_ns = now;
		set->n_joins = 0;
	}
	return set->n_members == PROBE_SET_MEMBERS_MAX || ++set->n_joins > PROBE_SET_JOINS_MAX;
}

int probe_set__join(struct probe_set *set, pid_t pid, struct err *err)
{
	if (set->everywhere || set->over || find(set, pid))
		return 0;
	/* The kernel finds the address space by the first thread, which has none after its end. */
	if (is_crowded(set) || living_task__of(pid) != (uint32_t)pid)
		return probe_set__go_everywhere(set, err);
	return add_member(set, pid, err);
}

void probe_set__leave(struct probe_set *set, pid_t pid)
{
	struct member *member = pid > 0 ? find(set, pid) : NULL;

	if (!member)
		return;
	leave_to_reaper(set, member->links);
	*member = set->members[--set->n_members];
}

static void free_members(struct probe_set *set)
{
	struct probe_links *list[PROBE_SET_MEMBERS_MAX];
	size_t n = set->n_members;

	for (size_t i = 0; i < n; i++)
		list[i] = set->members[i].links;
	probe_links__detach_all(list, n);
	while (set->n_members)
		probe_links__free(set->members[--set->n_members].links);
}

/* Detaches first, so that no hit counts twice. */
int probe_set__go_everywhere(struct probe_set *set, struct err *err)
{
	if (set->everywhere || set->over)
		return 0;
	free_members(set);
	set->everywhere = true;
	return add_member(set, -1, err);
}

bool probe_set__is_everywhere(const struct probe_set *set)
{
	return set->everywhere;
}

/* --- points --- */

static void group__done(struct group *group)
{
	elf_file__free(group->file);
	free(group->points);
}

static int group__init(struct group *group, const struct bpf_program *program,
		       const struct probe_point *points, size_t n, struct err *err)
{
	int fd = fcntl(points->file->fd, F_DUPFD_CLOEXEC, 0);
	int ret = fd < 0 ? -errno : elf_file__open(fd, points->file->path, &group->file, err);

	if (fd < 0)
		return err__set(err, ret, "%s: %s", points->file->path, strerror(-ret));
	group->program = program;
	group->n = n;
	group->points = ret ? NULL : malloc(n * sizeof(*points));
	if (!ret && !group->points)
		ret = err__set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; !ret && i < n; i++) {
		group->points[i] = points[i];
		group->points[i].file = group->file;
	}
	return ret;
}

static int add_group(struct probe_set *set, const struct bpf_program *program,
		     const struct probe_point *points, size_t n, struct err *err)
{
	struct group group = {};
	int ret = 0;

	if (array__reserve(&set->groups, &set->cap_groups, set->n_groups + 1, sizeof(*set->groups)))
		return err__set(err, -ENOMEM, "out of memory");
	ret = group__init(&group, program, points, n, err);
	if (ret)
		group__done(&group);
	else
		set->groups[set->n_groups++] = group;
	return ret;
}

int probe_set__attach(struct probe_set *set, const struct bpf_program *program,
		      const struct probe_point *points, size_t n, struct err *err)
{
	size_t first = set->n_groups, some;
	int ret = 0;

	if (set->over)
		return 0;
	for (size_t i = 0; !ret && i < n; i += some) {
		for (some = 1; i + some < n && points[i + some].file == points[i].file; some++)
			;
		ret = add_group(set, program, points + i, some, err);
	}
	for (size_t i = 0; !ret && i < set->n_members; i++) {
		ret = attach_groups(set, &set->members[i], first, err);
		ret = ret == -ESRCH ? 0 : ret;
	}
	return ret;
}

/* --- creation and destruction --- */

struct probe_set *probe_set__new(bool everywhere)
{
	struct probe_set *set = calloc(1, sizeof(*set));
	struct err ignored = {};

	if (!set)
		return NULL;
	pthread_mutex_init(&set->lock, NULL);
	pthread_cond_init(&set->wake, NULL);
	if (everywhere && probe_set__go_everywhere(set, &ignored)) {
		probe_set__free(set);
		return NULL;
	}
	return set;
}

void probe_set__detach(struct probe_set *set)
{
	set->over = true;
	free_members(set);
	stop_reaper(set);
}

void probe_set__free(struct probe_set *set)
{
	if (!set)
		return;
	probe_set__detach(set);
	for (size_t i = 0; i < set->n_groups; i++)
		group__done(&set->groups[i]);
	free(set->groups);
	free(set->left);
	pthread_mutex_destroy(&set->lock);
	pthread_cond_destroy(&set->wake);
	free(set);
}
