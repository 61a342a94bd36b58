// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/tracker.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "core/spaces.h"
#include "core/tracker_private.h"
#include "core/util.h"

int tracker__new(const struct tracker_opts *opts, struct tracker **ret)
{
	struct tracker *tracker = calloc(1, sizeof(*tracker));
	int code;

	if (!tracker)
		return -ENOMEM;
	tracker->opts = *opts;
	tracker->targets_fd = kernel_half__map_fd(opts->half, "targets");
	code = spaces__new(kernel_half__map_fd(opts->half, "mappings"), &tracker->spaces);
	if (code)
		free(tracker);
	else
		*ret = tracker;
	return code;
}

void tracker__put_space(struct tracker *tracker, struct space *space)
{
	int i;

	if (!space || --space->refs)
		return;
	for (i = 0; tracker->opts.runtimes[i]; i++)
		if (space->attached & 1U << i)
			tracker->opts.runtimes[i]->detach(tracker->opts.sessions[i], space->id);
	spaces__give(tracker->spaces, space);
}

void process__clear_mapped(struct process *process)
{
	size_t i;

	for (i = 0; i < process->n_mapped; i++)
		free(process->mapped[i].path);
	free(process->mapped);
	process->mapped = NULL;
	process->n_mapped = 0;
	process->is_behind = false;
	u64map__done(&process->frames);
}

void tracker__free(struct tracker *tracker)
{
	struct process *process, *next;

	if (!tracker)
		return;
	HASH_ITER (hh, tracker->processes, process, next)
		tracker__forget(tracker, process);
	spaces__free(tracker->spaces);
	free(tracker);
}

int tracker__tick(struct tracker *tracker)
{
	struct process *process;
	int code = 0;

	for (process = tracker->processes; !code && process; process = process->hh.next) {
		if (process->gone)
			continue;
		code = tracker__refresh(tracker, process);
		tracker__judge_probes(tracker, process);
	}
	spaces__refill(tracker->spaces); /* else when one is needed */
	return code;
}

#define RETRY_NS 50000000ULL

int tracker__retry(struct tracker *tracker, uint64_t now)
{
	struct process *process = tracker->any_pending ? tracker->processes : NULL;
	int code = 0;

	tracker->any_pending = false;
	for (; !code && process; process = process->hh.next) {
		if (process->gone || !process->space || !process->space->pending)
			continue;
		tracker->any_pending = true;
		if (now >= process->refreshed_ns + RETRY_NS)
			code = tracker__refresh(tracker, process);
	}
	return code;
}

struct process *tracker__find(const struct tracker *tracker, uint32_t pid)
{
	struct process *process;

	HASH_FIND(hh, tracker->processes, &pid, sizeof(pid), process);
	return process;
}

struct process *tracker__first_wanted(const struct tracker *tracker)
{
	return tracker->wanted;
}

struct process *tracker__first(const struct tracker *tracker)
{
	return tracker->processes;
}

uint64_t tracker__unread(const struct tracker *tracker)
{
	return tracker->unread;
}

unsigned tracker__count_wanted(const struct tracker *tracker)
{
	const struct process *process;
	unsigned n = 0;

	for (process = tracker->wanted; process; process = process->next_wanted)
		n += !process->gone;
	return n;
}

const struct mapped *process__find(const struct process *process, uint64_t address)
{
	size_t lo = 0, hi = process->n_mapped, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (process->mapped[mid].start <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && address < process->mapped[lo - 1].end ? &process->mapped[lo - 1] : NULL;
}

static bool is_path_of(const char *path, const char *file)
{
	size_t n = strlen(path), n_file = strlen(file);

	return n >= n_file && !strcmp(path + n - n_file, file) &&
	       (n == n_file || path[n - n_file - 1] == '/');
}

int process__find_symbol(const struct process *process, const char *file, const char *symbol,
			 uint64_t *ret_address)
{
	size_t i;

	for (i = 0; i < process->n_mapped; i++) {
		const struct mapped *mapped = &process->mapped[i];
		uint64_t vaddr;

		if (!mapped->image || !is_path_of(mapped->path, file) ||
		    elf_file__find_symbol(mapped->image->file, symbol, &vaddr, NULL))
			continue;
		*ret_address = vaddr + mapped->bias;
		return 0;
	}
	return -ENOENT;
}

/* A program that was executed meanwhile is not what this is about: the record of that is on its
 * way. */
int tracker__publish(struct tracker *tracker, const struct process *process)
{
	struct proc_rec rec = { .program = process->program };

	if (!bpf_map_lookup_elem(tracker->targets_fd, &process->pid, &rec) &&
	    rec.program != process->program)
		return 0;
	return tracker__publish_over(tracker, process, &rec);
}

int tracker__publish_over(struct tracker *tracker, const struct process *process,
			  const struct proc_rec *before)
{
	struct proc_rec rec = { .flags = PROC_FOLLOW | (process->starting ? PROC_STARTING : 0),
				.program = process->program,
				.mm = before->program == process->program ? before->mm : 0 };

	if (process->wanted)
		rec.flags |= PROC_WANTED;
	if (process->probed | process->paused | process->expected)
		rec.flags |= PROC_URGENT;
	if (process->space) {
		rec.space = process->space->id;
		rec.walkers = process->space->walkers;
	}
	return bpf_map_update_elem(tracker->targets_fd, &process->pid, &rec, BPF_ANY) ? -errno : 0;
}

void tracker__count_unread(struct tracker *tracker, struct process *process)
{
	tracker->unread += !process->unread;
	process->unread = true;
}

static void publish_mappings(struct tracker *tracker, struct process *process)
{
	struct mappings_rec *shared = process->space->shared;
	uint32_t active = !__atomic_load_n(&shared->active, __ATOMIC_RELAXED);
	struct mapping_list *list = &shared->lists[active];
	size_t n = min_of(process->n_mapped, (size_t)MAPPINGS_MAX), i;
	struct runtime_range callers = tracker__jit_callers(tracker, process);

	__atomic_store_n(&list->changes, list->changes + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (i = 0; i < n; i++) {
		const struct mapped *mapped = &process->mapped[i];
		const struct image *image = mapped->image;
		struct mapping_rec *rec = &list->mappings[i];

		*rec = (struct mapping_rec) { .start = mapped->start,
					      .end = mapped->end,
					      .bias = mapped->bias };
		if (!image) {
			rec->vaddr_start = callers.start;
			rec->rules_at = callers.end - callers.start;
		}
		if (image && image->table.n_pages)
			rec->n_pages = PAGES_UNPLACED;
		if (!image || !image->has_table)
			continue;
		rec->vaddr_start = image->table.vaddr_start;
		rec->n_pages = image->table.n_pages;
		rec->base = image->base;
		rec->rules_at = image->table.rules_at;
		rec->rows_at = image->table.rows_at;
	}
	list->n = n;
	__atomic_store_n(&list->changes, list->changes + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&shared->active, active, __ATOMIC_RELEASE);
}

static bool same_mappings(const struct process *process, const struct procfs_mappings *mappings)
{
	size_t i;

	if (mappings->n != process->n_mapped || process->is_behind)
		return false;
	for (i = 0; i < mappings->n; i++) {
		const struct procfs_mapping *a = &mappings->list[i];
		const struct mapped *b = &process->mapped[i];

		if (a->start != b->start || a->end != b->end || a->offset != b->offset ||
		    strcmp(a->path, b->path))
			return false;
	}
	return true;
}

/* Takes the paths out of `mappings`. */
static int take_mappings(struct tracker *tracker, struct process *process,
			 struct procfs_mappings *mappings)
{
	struct mapped *list = calloc(mappings->n ? mappings->n : 1, sizeof(*list));
	size_t i;
	int code = 0;

	if (!list)
		return -ENOMEM;
	for (i = 0; i < mappings->n && code != -ENOMEM; i++) {
		struct procfs_mapping *from = &mappings->list[i];
		struct mapped *to = &list[i];

		*to = (struct mapped) { .start = from->start,
					.end = from->end,
					.offset = from->offset };
		/* A file that cannot be read costs the symbols and tables of its frames only. */
		code = images__get(tracker->opts.images, process->pid, from, &to->image, NULL);
		to->bias = to->image ? image__bias(to->image, from) : from->start;
		to->path = from->path;
		from->path = NULL;
	}
	process__clear_mapped(process);
	process->mapped = list;
	process->n_mapped = i;
	return code == -ENOMEM ? code : 0;
}

/* What is published already is published again if that turns out to lack something. */
static int ask_runtimes(struct tracker *tracker, struct process *process)
{
	struct runtime_range before = tracker__jit_callers(tracker, process), now;
	size_t i;
	int code = 0;

	for (i = 0; !code && i < process->n_mapped; i++)
		if (process->mapped[i].image)
			code = images__ask_runtimes(tracker->opts.images, process->mapped[i].image);
	now = tracker__jit_callers(tracker, process);
	if (now.start != before.start || now.end != before.end)
		publish_mappings(tracker, process);
	return code;
}

/* Is there anything about what the process executes that has to be seen to at its start? */
static void judge_exe(struct tracker *tracker, const struct process *process)
{
	const struct space *space = process->space;
	bool plain = !(space->decided | space->pending);
	size_t i;

	if (!process->exe || process->exe->is_plain == plain)
		return;
	for (i = 0; plain && i < process->n_mapped; i++)
		plain = !process->mapped[i].image || !image__has_runtime(process->mapped[i].image);
	process->exe->is_plain = plain;
	kernel_half__set_plain(tracker->opts.half, process->exe->number, plain);
}

/* What a process cannot have costs its own stacks only. */
static void publish(struct tracker *tracker, struct process *process)
{
	if (tracker__publish(tracker, process))
		tracker__count_unread(tracker, process);
}

int tracker__refresh(struct tracker *tracker, struct process *process)
{
	struct procfs_mappings mappings = {};
	bool is_new = !process->space;
	int code;

	process->refreshed_ns = now_ns();
	code = procfs__mappings(process->pid, &mappings);
	if ((code == -EMFILE || code == -ENFILE) && !process->space)
		tracker__count_unread(tracker, process);
	if (code)
		return code == -ENOMEM ? code : 0; /* gone: what was read before stays */
	if (!mappings.n)
		goto out;
	if (process->space && same_mappings(process, &mappings)) {
		if (process->space->pending) {
			tracker__attach_runtimes(tracker, process);
			publish(tracker, process);
		}
		goto out;
	}
	process->changed_ns = process->refreshed_ns;
	if (!process->space || process->space->refs > 1) {
		struct space *own = NULL;

		code = spaces__take(tracker->spaces, &own);
		if (code) { /* it is tried again */
			code = 0;
			tracker__count_unread(tracker, process);
			goto out;
		}
		tracker__put_space(tracker, process->space);
		process->space = own;
	}
	code = take_mappings(tracker, process, &mappings);
	if (code)
		goto out;
	publish_mappings(tracker, process);
	if (is_new) /* another may have a space of its parent's, with all that belongs to it */
		publish(tracker, process);
	code = ask_runtimes(tracker, process);
	if (code)
		goto out;
	tracker__attach_runtimes(tracker, process);
	judge_exe(tracker, process);
	publish(tracker, process);
out:
	procfs_mappings__done(&mappings);
	return code;
}

void tracker__forget(struct tracker *tracker, struct process *process)
{
	struct process **at = &tracker->wanted;

	while (*at && *at != process)
		at = &(*at)->next_wanted;
	if (*at)
		*at = process->next_wanted;
	tracker__unprobe(tracker, process);
	tracker__put_space(tracker, process->space);
	close_fd(&process->pidfd);
	HASH_DEL(tracker->processes, process);
	process__clear_mapped(process);
	free(process);
}

int tracker__new_process(struct tracker *tracker, uint32_t pid, const struct procfs_info *info,
			 struct process **ret)
{
	struct process *process = tracker__find(tracker, pid);

	if (process) /* the PID of one that has ended is used again */
		tracker__forget(tracker, process);
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	process->pid = pid;
	process->info = *info;
	process->pidfd = -1;
	HASH_ADD(hh, tracker->processes, pid, sizeof(pid), process);
	*ret = process;
	return 0;
}

int tracker__add(struct tracker *tracker, uint32_t pid, bool starting, struct process **ret,
		 struct err *err)
{
	struct process *process;
	struct procfs_info info;
	int code = procfs__target(pid, &info, err);

	if (code)
		return code;
	process = tracker__find(tracker, info.pid); /* named twice, or by two of its threads */
	if (!process || process->gone)
		code = tracker__new_process(tracker, info.pid, &info, &process);
	if (code)
		return err__set(err, code, "out of memory");
	if (!process->wanted) {
		process->wanted = true;
		process->next_wanted = tracker->wanted;
		tracker->wanted = process;
	}
	process->starting = starting;
	code = tracker__publish(tracker, process);
	if (code)
		return err__set(err, code, "cannot follow PID %u: %s", info.pid, strerror(-code));
	*ret = process;
	return 0;
}
