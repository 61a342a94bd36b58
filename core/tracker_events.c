// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/tracker_private.h"

#include <bpf/bpf.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/spaces.h"
#include "core/util.h"

/* What the kernel half tells of processes. Most children live for so short a time that nothing of
 * them can be read; what is known of them came with these records, and they should cost next to
 * nothing. */

static int copy_mapped(struct process *child, const struct process *parent)
{
	child->mapped = calloc(parent->n_mapped ? parent->n_mapped : 1, sizeof(*child->mapped));
	if (!child->mapped)
		return -ENOMEM;
	for (; child->n_mapped < parent->n_mapped; child->n_mapped++) {
		struct mapped *to = &child->mapped[child->n_mapped];

		*to = parent->mapped[child->n_mapped];
		to->path = strdup(to->path);
		if (!to->path)
			return -ENOMEM;
	}
	return 0;
}

/* A child shares its parent's address space number, if the kernel half knew it when it forked.
 * (Else, its mappings are read when a sample asks for them.) The parent may have got another number
 * meanwhile, and the child executed something else. */
static int share_space(struct tracker *tracker, struct process *child, const struct process *parent)
{
	struct proc_rec rec;
	int code = copy_mapped(child, parent);

	if (code || bpf_map_lookup_elem(tracker->targets_fd, &child->pid, &rec) || !rec.space ||
	    rec.program != child->program || !parent->space)
		return code;
	child->space = parent->space;
	child->space->refs++;
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

int tracker__on_fork(struct tracker *tracker, const struct rec_task *rec)
{
	struct process *parent = tracker__find(tracker, rec->parent_tgid), *child;
	struct procfs_info info = info_of_child(parent, rec);
	int code = tracker__new_process(tracker, rec->tgid, &info, &child);

	if (code)
		return code;
	child->program = rec->program;
	child->is_info_derived = parent;
	return parent ? share_space(tracker, child, parent) : 0;
}

void process__read_info(struct process *process)
{
	struct procfs_info info;

	if (process->is_info_derived && !process->gone && !procfs__info(process->pid, &info, NULL))
		process->info = info;
	process->is_info_derived = false;
}

static void take_command(struct procfs_info *info, const struct rec_exec *rec)
{
	size_t len = min_of(rec->command_len, (uint32_t)sizeof(rec->command));

	snprintf(info->name, sizeof(info->name), "%.*s", (int)sizeof(rec->comm), rec->comm);
	procfs__make_printable(info->name, strlen(info->name));
	procfs__join_arguments(rec->command, len, info);
}

/* Whoever executed the same before had no runtime: what this maps will matter with its first
 * sample, if there is one. */
static bool is_plain(const struct process *process)
{
	return process->exe && process->exe->is_plain;
}

int tracker__on_exec(struct tracker *tracker, struct process *process, const struct rec_exec *rec)
{
	struct proc_rec now;

	tracker__unprobe(tracker, process);
	tracker__put_space(tracker, process->space);
	process->space = NULL;
	process__clear_mapped(process);
	take_command(&process->info, rec);
	process->is_info_derived = true;
	process->starting = false;
	process->recording_id = 0;
	process->program = rec->program;
	process->exe = images__by_number(tracker->opts.images, rec->image);
	/* What was published while it executed this may have overwritten what the kernel half
	 * knows. */
	if (!bpf_map_lookup_elem(tracker->targets_fd, &process->pid, &now) &&
	    (now.program < rec->program || (now.program == rec->program && now.space)))
		tracker__publish_over(tracker, process, &now);
	return is_plain(process) ? 0 : tracker__refresh(tracker, process);
}

static int insert_mapped(struct process *process, const struct rec_mapped *rec, struct image *image)
{
	struct mapped *list, *at;
	__u64 distance;
	size_t i = 0;

	if (!image__vaddr_less_offset(image, &distance))
		return 0;
	while (i < process->n_mapped && process->mapped[i].end <= rec->start)
		i++;
	if (i < process->n_mapped && process->mapped[i].start < rec->end)
		return 0; /* known */
	list = realloc(process->mapped, (process->n_mapped + 1) * sizeof(*list));
	if (!list)
		return -ENOMEM;
	process->mapped = list;
	at = &list[i];
	memmove(at + 1, at, (process->n_mapped - i) * sizeof(*list));
	*at = (struct mapped) { .start = rec->start,
				.end = rec->end,
				.offset = rec->offset,
				.bias = rec->start - rec->offset - distance,
				.image = image,
				.path = strdup(image->file->path) };
	if (!at->path)
		return -ENOMEM;
	process->n_mapped++;
	process->is_behind = true;
	process->changed_ns = now_ns();
	return 0;
}

int tracker__on_mapped(struct tracker *tracker, struct process *process,
		       const struct rec_mapped *rec)
{
	struct image *image = images__by_number(tracker->opts.images, rec->image);
	int code;

	if (!image)
		return 0;
	process->program = max_of(process->program, rec->program);
	code = insert_mapped(process, rec, image);
	if (code || process->gone)
		return code;
	if (process->space) /* it was mapped since its mappings were read */
		return tracker__on_unmapped(tracker, process, now_ns());
	if (!code && image__has_runtime(image))
		code = tracker__refresh(tracker, process);
	return code;
}

#define UNMAPPED_PAUSE_NS  1000000ULL
#define UNMAPPED_SHIFT_MAX 10

int tracker__on_unmapped(struct tracker *tracker, struct process *process, uint64_t now)
{
	uint32_t shift = min_of(process->wasted, (uint32_t)UNMAPPED_SHIFT_MAX);
	uint64_t changed_ns = process->changed_ns;
	int code;

	if (process->gone || now < process->refreshed_ns ||
	    (process->wasted && now < process->refreshed_ns + (UNMAPPED_PAUSE_NS << shift)))
		return 0;
	code = tracker__refresh(tracker, process);
	process->wasted = process->changed_ns == changed_ns ? process->wasted + 1 : 0;
	return code;
}

void tracker__learn_file(struct tracker *tracker, const struct process *process,
			 const struct rec_unmapped *rec)
{
	const struct mapped *mapped = process__find(process, rec->start);

	if (mapped && mapped->start == rec->start && mapped->image)
		images__learn(tracker->opts.images, &rec->key, mapped->image);
}

void tracker__on_gone(struct tracker *tracker, struct process *process)
{
	struct proc_rec rec;

	if (process->gone)
		return;
	process->gone = true;
	process->gone_ns = now_ns();
	tracker__judge_expected(tracker, process);
	tracker__unprobe(tracker, process);
	if (!bpf_map_lookup_elem(tracker->targets_fd, &process->pid, &rec) &&
	    rec.program == process->program) /* else another has its PID by now */
		bpf_map_delete_elem(tracker->targets_fd, &process->pid);
	tracker__put_space(tracker, process->space);
	process->space = NULL;
	close_fd(&process->pidfd);
}

/* Samples of their last moments, in the kernel, are in the ring by then. */
#define REMEMBERED_NS (2 * NSEC_PER_SEC)

void tracker__reap(struct tracker *tracker, tracker_reap_fn before, void *ctx)
{
	uint64_t now = now_ns();
	struct process *process, *next;

	HASH_ITER (hh, tracker->processes, process, next)
		if (process->gone && !process->wanted && now > process->gone_ns + REMEMBERED_NS) {
			before(ctx, process);
			tracker__forget(tracker, process);
		}
}
