// SPDX-License-Identifier: GPL-2.0-or-later
/* Finds the processes below those that the user named, when a recording begins. The kernel half
 * follows later forks from the time at which their parent is published. So if a scan of /proc finds
 * no new process, none is missing. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/target/procfs.h"
#include "core/target/tracker_state.h"

#define LOOKS_MAX 16 /* scans; ends with targets that fork faster than a scan */

struct family {
	struct member {
		uint32_t pid, parent_pid;
	} * list;
	size_t n, cap;
};

static int read_all(struct family *family)
{
	DIR *dir = opendir(procfs__root());
	struct dirent *entry;
	int ret = dir ? 0 : -errno;

	family->n = 0;
	while (!ret && (entry = readdir(dir))) {
		uint32_t pid = strtoul(entry->d_name, NULL, 10);
		uint32_t parent_pid = pid ? procfs__parent(pid) : 0;

		if (!parent_pid)
			continue;
		ret = array__reserve(&family->list, &family->cap, family->n + 1,
				     sizeof(*family->list));
		if (!ret)
			family->list[family->n++] = (struct member) { pid, parent_pid };
	}
	if (dir)
		closedir(dir);
	return ret;
}

static bool is_tracked(const struct tracker *tracker, uint32_t pid)
{
	const struct process *process = tracker__find(tracker, pid);

	return process && !process__is_ended(process);
}

/* Adds one generation at a time. */
static int add_children(struct tracker *tracker, const struct family *family, unsigned *ret_n)
{
	const struct member *member;
	struct procfs_info info;
	struct process *process;
	unsigned before;
	int ret = 0;

	do {
		before = *ret_n;
		for (member = family->list; !ret && member < family->list + family->n; member++) {
			if (member->pid == (uint32_t)getpid() || is_tracked(tracker, member->pid) ||
			    !is_tracked(tracker, member->parent_pid) ||
			    procfs__target(member->pid, &info, NULL))
				continue;
			ret = tracker__new_process(tracker, member->pid, &info, &process);
			if (ret)
				break;
			tracker__set_cgroup(tracker, process, 0);
			ret = tracker__publish(tracker, process);
			++*ret_n;
		}
	} while (!ret && *ret_n > before);
	return ret;
}

int tracker__add_descendants(struct tracker *tracker, unsigned *ret_n)
{
	struct family family = {};
	unsigned before, n = 0;
	int ret, look = 0;

	do {
		before = n;
		ret = read_all(&family);
		if (!ret)
			ret = add_children(tracker, &family, &n);
	} while (!ret && n > before && ++look < LOOKS_MAX);
	free(family.list);
	*ret_n = n;
	return ret;
}
