// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/tracker_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/privilege.h"
#include "core/base/util.h"
#include "core/kernel/maps.h"
#include "core/kernel/spaces.h"
#include "core/target/tracker_runtimes.h"

/* Process events of the kernel half. Most children live too briefly for a read of /proc. All data
 * about them comes from these records, whose processing must cost next to nothing. */

/* Copies the parent's mappings. Mappings over the user's budget are not copied. */
static int copy_mapped(struct process *child, const struct process *parent)
{
	size_t n = parent->n_mapped, i;
	struct mapped *list = calloc(n ? n : 1, sizeof(*list));
	bool failed = !list;

	for (i = 0; !failed && i < n; i++) {
		list[i] = parent->mapped[i];
		list[i].path = strdup(list[i].path);
		failed = !list[i].path;
	}
	if (list)
		process__set_mapped(child, list, i);
	return failed ? -ENOMEM : 0;
}

/* Lets the child share its parent's address space number, if the kernel half had the number at the
 * fork. Otherwise a sample requests a read of the child's mappings. Meanwhile the parent may have
 * got another number, and the child may have executed another program. */
static int share_space(struct tracker *tracker, struct process *child, const struct process *parent)
{
	struct proc_rec rec;
	int ret = copy_mapped(child, parent);

	if (ret || map__lookup(tracker->targets_fd, &child->pid, &rec) || !rec.space ||
	    rec.program != child->program || !parent->space)
		return ret;
	parent->space->refs++;
	process__take_space(child, parent->space);
	tracker__probe_child(tracker, child, parent);
	if (rec.space == child->space->id && rec.walkers == child->space->walkers)
		return 0;
	if (tracker__publish_over(tracker, child, &rec))
		tracker__count_unread(tracker, child);
	return 0;
}

static struct procfs_info info_of_child(const struct process *parent, const struct rec_task *rec)
{
	struct procfs_info info = {};

	if (!parent) {
		procfs__info(rec->tgid, &info, NULL);
	} else {
		info = parent->info;
		info.inner_pid = rec->tgid;
		info.start_ticks = rec->start_ns / (NSEC_PER_SEC / sysconf(_SC_CLK_TCK));
		info.cpu_ticks = 0;
	}
	info.pid = rec->tgid;
	info.parent_pid = rec->parent_tgid;
	return info;
}

static bool has_own_code(const struct process *process)
{
	for (size_t i = 0; i < process->n_mapped; i++)
		if (!process->mapped[i].image)
			return true;
	return false;
}

/* Adds the parent and its ancestors to those of the child, for names of code that existed at the
 * fork. Whether they have generated code may be undecided, as the fork may follow at once. If they
 * have, completes the parent's `info`, which identifies its files, while the parent lives. */
static void inherit_code(struct process *child, struct process *parent, uint64_t time_ns)
{
	if (has_own_code(parent))
		process__read_info(parent);
	child->ancestors[child->n_ancestors++] =
		(struct jit_ancestor) { parent->info.inner_pid, parent->info.start_ticks, time_ns };
	for (size_t i = 0; i < parent->n_ancestors && child->n_ancestors < JIT_ANCESTORS_MAX; i++)
		child->ancestors[child->n_ancestors++] = parent->ancestors[i];
}

int tracker__on_fork(struct tracker *tracker, const struct rec_task *rec)
{
	struct process *parent = tracker__find(tracker, rec->parent_tgid), *child;
	struct procfs_info info = info_of_child(parent, rec);
	int ret = tracker__new_process(tracker, rec->tgid, &info, &child);

	if (ret)
		return ret;
	child->program = rec->program;
	child->is_info_derived = parent;
	tracker__share_cgroup(child, parent);
	if (!parent)
		return 0;
	inherit_code(child, parent, rec->time_ns);
	return share_space(tracker, child, parent);
}

void tracker__take_command(struct procfs_info *info, const struct rec_program *rec)
{
	size_t len = min_of(rec->command_len, (uint32_t)sizeof(rec->command));

	snprintf(info->name, sizeof(info->name), "%.*s", (int)sizeof(rec->comm), rec->comm);
	procfs__make_printable(info->name, strlen(info->name));
	procfs__join_arguments(rec->command, len, info);
}

bool process__is_plain(const struct process *process)
{
	return process->exe && process->exe->is_plain;
}

/* Returns true if the process may belong, by its new program, to another user than braid's. An
 * ended process cannot be checked, and counts as another user's. */
static bool is_anothers(const struct process *process)
{
	struct procfs_info info;

	return privilege__is_lent() && (procfs__info(process->pid, &info, NULL) ||
					privilege__check_owner(process->pid, info.uid, NULL));
}

int tracker__on_exec(struct tracker *tracker, struct process *process,
		     const struct rec_program *rec)
{
	struct proc_rec now;

	if (tracker__is_refused(tracker, rec)) {
		tracker__forget(tracker, process);
		return 0;
	}
	tracker__unprobe(tracker, process);
	tracker__put_space(tracker, process->space);
	process->space = NULL;
	if (process->state == PROCESS_STARTING || process->state == PROCESS_PUBLISHED)
		process__enter(process, PROCESS_NEW);
	process__forget_code(process);
	process__clear_mapped(process);
	process->serial = ++tracker->last_serial;
	if (rec->is_relieved)
		process->relieved_serial = process->serial;
	process->attached = 0;
	process->n_ancestors = 0;
	tracker__take_command(&process->info, rec);
	process->is_info_derived = true;
	process->refreshed_ns = 0;
	process->found_ns = now_ns();
	process->hidden = is_anothers(process);
	process->program = rec->program;
	process->exe = images__by_number(tracker->opts.images, rec->image);
	if (rec->cgroup)
		tracker__set_cgroup(tracker, process, rec->cgroup);
	/* Data that was published during the exec may have overwritten the kernel half's own. */
	if (!map__lookup(tracker->targets_fd, &process->pid, &now) &&
	    (now.program < rec->program ||
	     (now.program == rec->program && (now.space || now.flags & PROC_UNDECIDED))))
		tracker__publish_over(tracker, process, &now);
	return process__is_plain(process) ? 0 : tracker__refresh(tracker, process);
}
