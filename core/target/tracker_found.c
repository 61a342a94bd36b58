// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/tracker_state.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/living_task.h"
#include "core/base/util.h"
#include "core/kernel/maps.h"
#include "core/target/scope.h"

/* Processes that the user did not name, found by the kernel half because they run:
 * docs/reference/targets.md. */

static struct procfs_info info_of(const struct rec_program *rec)
{
	struct procfs_info info = { .pid = rec->tgid,
				    .parent_pid = rec->parent_tgid,
				    .inner_pid = rec->tgid,
				    .uid = rec->uid,
				    .start_ticks =
					    rec->start_ns / (NSEC_PER_SEC / sysconf(_SC_CLK_TCK)),
				    .kernel_thread = rec->is_kernel };

	tracker__take_command(&info, rec);
	return info;
}

/* Refuses the process, unless it has executed another program: that one gets a request of its own.
 */
static void refuse(struct tracker *tracker, const struct rec_program *rec)
{
	struct proc_rec now;

	if (map__lookup(tracker->targets_fd, &rec->tgid, &now) || now.program != rec->program)
		return;
	now.flags = PROC_REFUSED;
	map__update(tracker->targets_fd, &rec->tgid, &now);
}

bool tracker__is_refused(struct tracker *tracker, const struct rec_program *rec)
{
	struct procfs_info info;

	if (!tracker->opts.scope)
		return false;
	info = info_of(rec);
	/* The kernel half could not read the command line, or only a part. */
	if (!rec->is_kernel && (!rec->command_len || rec->command_len == COMMAND_BYTES))
		procfs__info(rec->tgid, &info, NULL);
	if (!scope__is_own(tracker->opts.scope, rec->tgid, rec->parent_tgid) &&
	    scope__takes_name(tracker->opts.scope, info.name, info.command))
		return false;
	refuse(tracker, rec);
	return true;
}

/* Publishes the process as accepted: the entry of the program that it executed before may still be
 * there. */
static void accept(struct tracker *tracker, const struct process *process)
{
	struct proc_rec now;

	if (!map__lookup(tracker->targets_fd, &process->pid, &now) &&
	    now.program <= process->program && now.flags & (PROC_UNDECIDED | PROC_REFUSED))
		tracker__publish_over(tracker, process, &now);
}

int tracker__on_found(struct tracker *tracker, const struct rec_program *rec)
{
	struct procfs_info info;
	struct process *process;
	int ret;

	if (!tracker->opts.scope || tracker__is_refused(tracker, rec))
		return 0;
	info = info_of(rec);
	ret = tracker__new_process(tracker, rec->tgid, &info, &process);
	if (ret)
		return ret;
	process->program = rec->program;
	process->is_info_derived = !rec->is_kernel;
	process->exe = images__by_number(tracker->opts.images, rec->image);
	tracker__set_cgroup(tracker, process, rec->cgroup);
	accept(tracker, process);
	if (!rec->is_kernel && !rec->command_len)
		process__read_info(process);
	return process__is_plain(process) || rec->is_kernel ? 0
							    : tracker__refresh(tracker, process);
}

void tracker__on_stranger_exit(struct tracker *tracker, uint32_t pid)
{
	struct proc_rec rec;

	if (tracker->opts.scope && !map__lookup(tracker->targets_fd, &pid, &rec) &&
	    rec.flags & PROC_REFUSED) /* it had ended when it was refused */
		map__delete(tracker->targets_fd, &pid);
}

int tracker__add_running(struct tracker *tracker, uint32_t pid)
{
	struct process *process = tracker__find(tracker, pid);
	struct procfs_info info;
	int ret;

	if ((process && !process__is_ended(process)) || !scope__takes(tracker->opts.scope, pid) ||
	    procfs__info(pid, &info, NULL) || state__has_ended(info.state))
		return 0;
	ret = tracker__new_process(tracker, pid, &info, &process);
	if (ret)
		return ret;
	tracker__set_cgroup(tracker, process, 0);
	return tracker__publish(tracker, process);
}

int tracker__refuse_ancestors(struct tracker *tracker)
{
	const struct proc_rec refused = { .flags = PROC_REFUSED };
	size_t n = 0;
	const uint32_t *pids = scope__ancestors(tracker->opts.scope, &n);
	int ret = 0;

	for (size_t i = 0; !ret && i < n; i++)
		ret = map__update(tracker->targets_fd, &pids[i], &refused);
	return ret;
}

int tracker__add_scope(struct tracker *tracker)
{
	DIR *dir = tracker->opts.scope ? opendir(procfs__root()) : NULL;
	struct dirent *entry;
	int ret = tracker->opts.scope && !dir ? -errno : 0;

	while (!ret && dir && (entry = readdir(dir))) {
		uint32_t pid = strtoul(entry->d_name, NULL, 10);

		if (pid)
			ret = tracker__add_running(tracker, pid);
	}
	if (dir)
		closedir(dir);
	return ret;
}

bool tracker__has_read(const struct tracker *tracker, uint32_t pid)
{
	const struct process *process = tracker__find(tracker, pid);

	return process && (process->space || process->refreshed_ns || process__is_ended(process) ||
			   process->info.kernel_thread || process__is_plain(process));
}

size_t tracker__count_unmet(const struct tracker *tracker)
{
	struct proc_rec rec;
	uint32_t pid;
	size_t n = 0, i;
	int code = map__next_key(tracker->targets_fd, NULL, &pid);

	for (i = 0; !code && i < TARGETS_MAX; i++) {
		n += !tracker__find(tracker, pid) &&
		     !map__lookup(tracker->targets_fd, &pid, &rec) && !(rec.flags & PROC_REFUSED);
		code = map__next_key(tracker->targets_fd, &pid, &pid);
	}
	return n;
}
