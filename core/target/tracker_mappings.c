// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/tracker_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/files/target_file.h"
#include "core/kernel/spaces.h"
#include "core/target/image_files.h"
#include "core/target/image_memory.h"
#include "core/target/mapping_times.h"
#include "core/target/moved_code.h"
#include "core/target/recent_mappings.h"
#include "core/target/tracker_runtimes.h"

/* Mappings of processes: reads them, compares them with the recorded ones, and publishes them to
 * the kernel half and to the runtimes. */

#define FILE_RETRY_SHIFT_MAX 6
#define DIFFERING_AT_ONCE    8 /* consecutive refreshes that compare code without a pause */

/* Mappings that can still be published. Those of files come first, as the list is the only way to
 * their tables. If a sample hits unlisted anonymous code, the kernel half finds it in the kernel's
 * own list of mappings (bpf/vma.bpf.h). */
struct mappings_room {
	size_t files, others;
};

static bool is_published(const struct mapped *mapped, struct mappings_room *room)
{
	size_t *left = mapped->image ? &room->files : &room->others;

	if (!*left)
		return false;
	--*left;
	return true;
}

static void publish_mappings(struct tracker *tracker, struct process *process)
{
	static const struct mapped anonymous = { .path = (char *)"" };
	struct mappings_rec *shared = process->space->shared;
	uint32_t active = !__atomic_load_n(&shared->active, __ATOMIC_RELAXED);
	struct mapping_list *list = &shared->lists[active];
	struct generated_code generated_callers = tracker__generated_code(tracker, process);
	struct mappings_room room = {};
	size_t n = 0, i;

	for (i = 0; i < process->n_mapped; i++)
		room.files += process->mapped[i].image != NULL;
	room.files = min_of(room.files, (size_t)MAPPINGS_MAX);
	room.others = MAPPINGS_MAX - room.files;
	__atomic_store_n(&list->changes, list->changes + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	list->generated_callers = tracker__jit_callers(tracker, process, &anonymous);
	for (i = 0; i < process->n_mapped; i++) {
		const struct mapped *mapped = &process->mapped[i];
		const struct image *image = mapped->image;
		struct mapping_rec *rec = &list->mappings[n];

		if (!is_published(mapped, &room))
			continue;
		n++;
		*rec = (struct mapping_rec) { .start = mapped->start,
					      .end = mapped->end,
					      .bias = mapped->bias };
		if (!image)
			rec->callers = tracker__jit_callers(tracker, process, mapped);
		if (!image)
			rec->callers.walkers |=
				process__generated_keeps(process, i, generated_callers)
				<< CALLERS_KEEPS_SHIFT;
		if (image && image->table.n_pages)
			rec->n_pages = PAGES_UNPLACED;
		else
			rec->is_image = image != NULL;
		if (!image || !image->has_table)
			continue;
		rec->vaddr_start = image->table.vaddr_start;
		rec->n_pages = image->table.n_pages;
		rec->base = image->base;
		rec->rules_at = image->table.rules_at;
		rec->rows_at = image->table.rows_at;
	}
	list->n = n;
	list->n_left_out = process->n_mapped - n;
	__atomic_store_n(&list->changes, list->changes + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&shared->active, active, __ATOMIC_RELEASE);
	mapping_times__on_published(process, now_ns());
}

/* Returns true if the mappings are unchanged. @ended is mappings_rec.ended before the mappings were
 * read. */
static bool same_mappings(const struct process *process, const struct procfs_mappings *mappings,
			  uint32_t ended)
{
	size_t i, k = 0;

	if (process->is_stale || mapping_times__has_notes(process) ||
	    process->space->shared->ended_read != ended)
		return false;
	for (i = 0; i < mappings->n; i++) {
		const struct procfs_mapping *a = &mappings->list[i];
		const struct mapped *b = &process->mapped[k];

		if (k >= process->n_mapped || a->start != b->whole_start ||
		    a->end != b->whole_end || a->offset != b->offset || a->inode != b->inode ||
		    strcmp(a->path, b->path))
			return false;
		while (k < process->n_mapped && process->mapped[k].whole_start == a->start)
			k++;
	}
	return k == process->n_mapped;
}

/* Sets the time of the next attempt. A file that did not answer in time is tried again after 1 s,
 * with a pause that doubles. Code that is being moved will have its bytes at one of the next
 * refreshes. */
static void plan_retry(struct process *process, bool late, bool differs)
{
	uint32_t shift = min_of(process->retries, (uint32_t)FILE_RETRY_SHIFT_MAX);
	uint64_t pause_ns = NSEC_PER_SEC << shift;

	if (differs && !late && process->retries < DIFFERING_AT_ONCE)
		pause_ns = 0;
	process->retry_ns = late || differs ? now_ns() + pause_ns : 0;
	process->retries = late || differs ? process->retries + 1 : 0;
}

static bool is_retry_due(const struct process *process)
{
	return process->retry_ns && process->refreshed_ns >= process->retry_ns;
}

/* --- mappings with their images --- */

/* Returns the time at which a file was mapped at @start, by the kernel's event; 0: unknown. */
static uint64_t mapped_at(const struct tracker *tracker, uint32_t pid, uint64_t start,
			  uint64_t inode)
{
	const struct procfs_mapping *mapping;
	size_t at = 0;

	while (inode && (mapping = recent_mappings__next(tracker->recent, pid, &at)))
		if (mapping->start == start && mapping->inode == inode)
			return recent_mappings__time(tracker->recent, at);
	return 0;
}

struct taking {
	struct tracker *tracker;
	struct process *process;
	struct procfs_mappings *mappings;
	struct mapped *list;
	size_t n, cap;
	bool late;    /* a file may answer later */
	bool differs; /* memory may have the code of a file later */
};

/* Returns the birth of a new mapping, or 0 for a recorded one, which has its time. */
static uint64_t born_of(const struct taking *taking, const struct procfs_mapping *mapping)
{
	const struct mapped *known = process__find(taking->process, mapping->start);

	return known && known->inode == mapping->inode && known->whole_start == mapping->start
		       ? 0
		       : mapped_at(taking->tracker, taking->process->pid, mapping->start,
				   mapping->inode);
}

/* Adds the part [@start, @end) of a mapping, if it is not empty. */
static int add_part(struct taking *taking, const struct procfs_mapping *from, uint64_t start,
		    uint64_t end, struct image *image, uint64_t bias)
{
	struct mapped *to;

	if (start >= end)
		return 0;
	if (array__reserve(&taking->list, &taking->cap, taking->n + 1, sizeof(*taking->list)))
		return -ENOMEM;
	to = &taking->list[taking->n];
	*to = (struct mapped) { .start = start,
				.end = end,
				.offset = from->offset,
				.image = image,
				.bias = image ? bias : start,
				.inode = from->inode,
				.dev = makedev(from->dev_major, from->dev_minor),
				.born_ns = born_of(taking, from),
				.whole_start = from->start,
				.whole_end = from->end };
	to->path = strdup(from->path);
	if (!to->path)
		return -ENOMEM;
	taking->n++;
	return 0;
}

/* Adds a mapping which has code of a file that it is not mapped from. The parts around that code
 * are separate mappings. */
static int add_moved(struct taking *taking, const struct procfs_mapping *from,
		     const struct moved_code *moved)
{
	int ret = add_part(taking, from, from->start, moved->start, NULL, 0);

	if (!ret)
		ret = add_part(taking, from, moved->start, moved->end, moved->image, moved->bias);
	if (!ret)
		taking->list[taking->n - 1].is_moved = true;
	return ret ? ret : add_part(taking, from, moved->end, from->end, NULL, 0);
}

/* Returns true if the process had that code there, and may be about to copy it: active functions
 * will return there. */
static bool is_moving(const struct process *process, const struct moved_code *moved)
{
	const struct mapped *before = process__find(process, moved->start);

	if (!before)
		before = mapping_times__find_ended(process, moved->start);
	return before && before->image == moved->image && before->bias == moved->bias &&
	       process->retries < DIFFERING_AT_ONCE;
}

/* Returns true if the code is mapped from its file. A runtime copies code only if it is not mapped
 * from the file. */
static bool is_in_file(const struct process *process, const struct image *image,
		       const struct runtime_range *code)
{
	for (size_t m = 0; m < process->n_mapped; m++) {
		const struct mapped *mapped = &process->mapped[m];

		if (mapped->image == image && !mapped->is_moved &&
		    mapped->start <= code->start + mapped->bias &&
		    mapped->end > code->start + mapped->bias)
			return true;
	}
	return false;
}

/* Finds code that a runtime of the process copied to the start of @from. Considers images that the
 * runtimes have examined. Returns as moved_code__find(). */
static int find_copy(const struct taking *taking, const struct procfs_mapping *from,
		     struct moved_code *ret)
{
	const struct runtime *const *runtimes = taking->process->runtimes->list;
	const struct image *last = NULL;
	int found = -ENOENT;

	for (size_t m = 0; from->anonymous && found && m < taking->process->n_mapped; m++) {
		struct image *image = taking->process->mapped[m].image;

		for (int i = 0; found && image && image != last && runtimes[i]; i++) {
			struct runtime_range code;

			if (!image->runtimes[i].image ||
			    !runtime__has(runtimes[i], files, copied_code))
				continue;
			code = runtimes[i]->files->copied_code(image->runtimes[i].image);
			if (!is_in_file(taking->process, image, &code))
				found = moved_code__find_copy(taking->process->pid, image, &code,
							      from, ret);
		}
		last = image;
	}
	return found ? -ENOENT : 0;
}

/* Finds code in @from that is not mapped from its file. @has_header: the memory may have the ELF
 * header of the code. Returns as moved_code__find(). */
static int find_moved(const struct taking *taking, const struct procfs_mapping *from,
		      bool has_header, struct moved_code *ret)
{
	struct process *process = taking->process;
	struct images *images = taking->tracker->opts.images;
	struct moved_code program;
	int code = moved_code__find(images, process->pid, taking->mappings, from, ret), found;

	if (code != -ENOENT && code != -EAGAIN)
		return code;
	found = image_memory__find_program(images, process->pid, from, &program);
	if (!found)
		*ret = program;
	if (!found || found == -ENOMEM || code == -EAGAIN)
		return found == -ENOENT ? code : found;
	if (has_header)
		code = image_memory__find(images, process->pid, process->info.uid, taking->mappings,
					  from, process__account(process), ret);
	if (code == -ENOENT)
		code = find_copy(taking, from, ret);
	if (code == -ENOENT && found == -EAGAIN) {
		*ret = program;
		return found;
	}
	return code;
}

/* Adds a mapping. An unreadable file costs only the symbols and tables of its frames. */
static int add_mapping(struct taking *taking, const struct procfs_mapping *from)
{
	struct images *images = taking->tracker->opts.images;
	uint32_t pid = taking->process->pid;
	struct moved_code moved;
	struct image *image;
	int ret = images__get(images, pid, from, &image, NULL);
	bool is_read = ret == -ENOEXEC || ret == -ENOTSUP; /* readable, but not a program */

	if (ret == -ENOMEM)
		return ret;
	taking->late |= ret == -ETIMEDOUT || ret == -EAGAIN;
	if (image)
		return add_part(taking, from, from->start, from->end, image,
				image__bias(image, from));
	ret = find_moved(taking, from, !is_read, &moved);
	if (ret == -ENOMEM)
		return ret;
	taking->differs |= ret == -EAGAIN || (!ret && moved.is_new);
	if (ret == -EAGAIN && is_moving(taking->process, &moved))
		ret = 0;
	return ret ? add_part(taking, from, from->start, from->end, NULL, 0)
		   : add_moved(taking, from, &moved);
}

static int take_mappings(struct tracker *tracker, struct process *process,
			 struct procfs_mappings *mappings)
{
	struct taking taking = { .tracker = tracker, .process = process, .mappings = mappings };
	int ret = 0, code;

	for (size_t i = 0; i < mappings->n && !ret; i++)
		ret = add_mapping(&taking, &mappings->list[i]);
	if (!ret)
		ret = mapping_times__replace(process, taking.list, taking.n, process->refreshed_ns);
	code = process__set_mapped(process, taking.list, taking.n);
	plan_retry(process, taking.late, taking.differs);
	return ret ? ret : code;
}

/* Returns true if the process has an image with code that its runtime may have copied. */
static bool has_copied_code(const struct process *process)
{
	for (size_t m = 0; m < process->n_mapped; m++)
		for (int i = 0; process->mapped[m].image && process->runtimes->list[i]; i++)
			if (process->mapped[m].image->runtimes[i].image &&
			    runtime__has(process->runtimes->list[i], files, copied_code))
				return true;
	return false;
}

/* Lets the runtimes examine the images. Publishes the mappings again if they were incomplete. */
static int ask_runtimes(struct tracker *tracker, struct process *process,
			struct procfs_mappings *mappings, bool is_new)
{
	struct code_callers before = tracker__jit_callers(tracker, process, NULL), now;
	struct generated_code generated = tracker__generated_code(tracker, process);
	size_t i;
	int ret = 0;

	for (i = 0; !ret && i < process->n_mapped; i++)
		if (process->mapped[i].image)
			ret = images__ask_runtimes(tracker->opts.images, process->mapped[i].image);
	if (!ret && is_new && has_copied_code(process)) {
		ret = take_mappings(tracker, process, mappings);
		publish_mappings(tracker, process);
	}
	now = tracker__jit_callers(tracker, process, NULL);
	if (now.start != before.start || now.bytes != before.bytes ||
	    tracker__generated_code(tracker, process).keeps != generated.keeps)
		publish_mappings(tracker, process);
	return ret;
}

/* Marks the executed image as plain if no runtime needs an action at its start. */
static void mark_plain(struct tracker *tracker, const struct process *process)
{
	const struct space *space = process->space;
	bool plain = !(space->decided | space->pending);
	size_t i;

	if (!process->exe || process->exe->is_plain == plain)
		return;
	for (i = 0; plain && i < process->n_mapped; i++)
		plain = !process->mapped[i].image ||
			(!image__has_runtime(process->mapped[i].image) &&
			 !process->mapped[i].image->has_context);
	process->exe->is_plain = plain;
	kernel_half__set_plain(tracker->opts.half, process->exe->number, plain);
}

/* Publishes the process. A failure costs only its own stacks. */
static void publish(struct tracker *tracker, struct process *process)
{
	if (tracker__publish(tracker, process))
		tracker__count_unread(tracker, process);
}

/* Counts a process whose mappings must not be read, unless it is hidden from its user. */
static void count_forbidden(struct tracker *tracker, struct process *process, int code)
{
	struct tracker_forbidden *forbidden = &tracker->forbidden;

	if (process->forbidden || process->hidden)
		return;
	process->forbidden = true;
	if (forbidden->processes++)
		return;
	forbidden->pid = process->pid;
	forbidden->code = code;
	snprintf(forbidden->name, sizeof(forbidden->name), "%s", process->info.name);
}

/* Returns the number of published mappings whose end the kernel half has seen. */
static uint32_t space__ended(const struct space *space)
{
	return __atomic_load_n(&space->shared->ended, __ATOMIC_ACQUIRE);
}

#define READS_MAX 3

/* Reads the mappings, and takes the events of all earlier mappings. If the process mapped something
 * meanwhile, reads the mappings again. Returns errors as procfs__mappings(). */
static int read_mappings(struct tracker *tracker, struct process *process,
			 struct procfs_mappings *ret_mappings)
{
	int ret = 0, i;

	for (i = 0; i < READS_MAX; i++) {
		process->refreshed_ns = now_ns();
		ret = procfs__mappings(process->pid, ret_mappings);
		if (ret || !tracker->opts.take_mmaps)
			return ret;
		tracker->opts.take_mmaps(tracker->opts.ctx);
		if (process->covered_ns < process->refreshed_ns)
			return 0;
		if (i + 1 < READS_MAX)
			procfs_mappings__done(ret_mappings);
	}
	return ret;
}

/* Attaches runtimes and contexts that were not ready at an earlier reading of the same mappings.
 * @is_published_again: the process has published a new context. */
static void attach_pending(struct tracker *tracker, struct process *process,
			   bool is_published_again)
{
	struct space *space = process->space;

	if (!space->pending && !space->awaits_context && !is_published_again)
		return;
	if (space->pending)
		tracker__attach_runtimes(tracker, process);
	if (space->awaits_context || is_published_again)
		tracker__attach_context(tracker, process);
	publish(tracker, process);
}

/* Reads and publishes the mappings. A budget that is exceeded, or a stop, costs only the process's
 * own stacks. */
static int refresh(struct tracker *tracker, struct process *process)
{
	struct procfs_mappings mappings = {};
	bool is_new = !process->space, is_published_again;
	uint32_t ended = is_new ? 0 : space__ended(process->space);
	int ret;

	ret = read_mappings(tracker, process, &mappings);
	if ((ret == -EMFILE || ret == -ENFILE) && !process->space)
		tracker__count_unread(tracker, process);
	if ((ret == -EACCES || ret == -EPERM) && !process->space)
		count_forbidden(tracker, process, ret);
	if (ret == -EFBIG && !process->space)
		tracker__count_unread(tracker, process);
	if (ret)
		return ret == -ENOMEM ? ret : 0; /* gone: earlier readings remain valid */
	if (mappings.is_cut)
		quota__refuse(process__account(process));
	ret = tracker__read_context(process, mappings.context, &is_published_again);
	if (ret || !mappings.n)
		goto out;
	if (process->space && !is_retry_due(process) && same_mappings(process, &mappings, ended)) {
		attach_pending(tracker, process, is_published_again);
		goto out;
	}
	process->changed_ns = process->refreshed_ns;
	if (!process->space || process->space->refs > 1) {
		struct space *own = NULL;

		ret = spaces__take(tracker->spaces, &own);
		if (ret) { /* tried again later */
			ret = 0;
			tracker__count_unread(tracker, process);
			goto out;
		}
		tracker__put_space(tracker, process->space);
		process->space = NULL;
		process__take_space(process, own);
		ended = space__ended(own);
	}
	ret = take_mappings(tracker, process, &mappings);
	if (ret == -EFBIG) {
		tracker__count_unread(tracker, process);
		ret = 0;
	}
	if (ret)
		goto out;
	publish_mappings(tracker, process);
	__atomic_store_n(&process->space->shared->ended_read, ended, __ATOMIC_RELEASE);
	if (is_new) /* otherwise it may have its parent's space, with all its data */
		publish(tracker, process);
	ret = ask_runtimes(tracker, process, &mappings, is_new);
	if (ret)
		goto out;
	tracker__attach_runtimes(tracker, process);
	tracker__attach_context(tracker, process);
	mark_plain(tracker, process);
	publish(tracker, process);
	tracker__expect_runtimes(tracker, process);
out:
	procfs_mappings__done(&mappings);
	return ret;
}

int tracker__refresh(struct tracker *tracker, struct process *process)
{
	struct quota_account *previous = quota__enter(process__account(process));
	int ret = refresh(tracker, process);

	quota__leave(previous);
	return ret;
}

/* --- reports of the kernel half about mappings --- */

/* A mapped part of a file's code. */
struct part {
	uint64_t start, end, offset;
	uint64_t inode;	  /* 0: the vDSO */
	uint64_t dev;	  /* 0: unknown */
	uint64_t born_ns; /* time of the mapping; 0: unknown */
};

static struct part part_of(const struct procfs_mapping *mapping, uint64_t born_ns)
{
	return (struct part) { .start = mapping->start,
			       .end = mapping->end,
			       .offset = mapping->offset,
			       .inode = mapping->inode,
			       .dev = makedev(mapping->dev_major, mapping->dev_minor),
			       .born_ns = born_ns };
}

static int insert_mapped(struct tracker *tracker, struct process *process, struct part rec,
			 struct image *image)
{
	struct mapped *list, *at;
	size_t i = 0, bytes;
	__u64 distance;
	char *path;

	if (!image__vaddr_less_offset(image, &distance))
		return 0;
	while (i < process->n_mapped && process->mapped[i].end <= rec.start)
		i++;
	if (i < process->n_mapped && process->mapped[i].start < rec.end)
		return 0; /* already recorded */
	bytes = sizeof(*list) + strlen(image->file->path) + 1;
	if (quota__charge(process__account(process), QUOTA_RETAINED, bytes))
		return 0; /* the next refresh reports it */
	process->charged += bytes;
	path = strdup(image->file->path);
	list = path ? realloc(process->mapped, (process->n_mapped + 1) * sizeof(*list)) : NULL;
	if (!list) {
		free(path);
		return -ENOMEM;
	}
	process->mapped = list;
	at = &list[i];
	memmove(at + 1, at, (process->n_mapped - i) * sizeof(*list));
	*at = (struct mapped) {
		.start = rec.start,
		.end = rec.end,
		.offset = rec.offset,
		.bias = rec.start - rec.offset - distance,
		.image = image,
		.whole_start = rec.start,
		.whole_end = rec.end,
		.inode = rec.inode,
		.dev = rec.dev,
		.born_ns = rec.born_ns ?: mapping_times__last_end(process, rec.start, rec.end),
		.path = path
	};
	process->n_mapped++;
	process->is_stale = true;
	process->changed_ns = now_ns();
	tracker__await_runtimes(tracker, process, image);
	return 0;
}

#define UNMAPPED_PAUSE_NS  1000000ULL
#define UNMAPPED_SHIFT_MAX 10

static int refresh_seldom(struct tracker *tracker, struct process *process, uint64_t now)
{
	uint32_t shift = min_of(process->fruitless_reads, (uint32_t)UNMAPPED_SHIFT_MAX);
	uint64_t changed_ns = process->changed_ns;
	int ret;

	if (process__is_ended(process) || now < process->refreshed_ns ||
	    (process->fruitless_reads &&
	     now < process->refreshed_ns + (UNMAPPED_PAUSE_NS << shift)))
		return 0;
	ret = tracker__refresh(tracker, process);
	process->fruitless_reads =
		process->changed_ns == changed_ns ? process->fruitless_reads + 1 : 0;
	return ret;
}

int tracker__on_mapped(struct tracker *tracker, struct process *process,
		       const struct rec_mapped *rec)
{
	struct image *image = images__by_number(tracker->opts.images, rec->image);
	int ret;

	if (!image) /* it was just released */
		return refresh_seldom(tracker, process, now_ns());
	process->program = max_of(process->program, rec->program);
	ret = insert_mapped(tracker, process,
			    (struct part) { .start = rec->start,
					    .end = rec->end,
					    .offset = rec->offset,
					    .inode = rec->inode,
					    .born_ns = mapped_at(tracker, process->pid, rec->start,
								 rec->inode) },
			    image);
	if (ret || process__is_ended(process))
		return ret;
	if (process->space) /* it was mapped after the last reading */
		return refresh_seldom(tracker, process, now_ns());
	if (!ret && image__has_runtime(image))
		ret = tracker__refresh(tracker, process);
	return ret;
}

/* Publishes the file of a mapping that the kernel half could not identify, if it is recorded by
 * now. */
static void learn_file(struct tracker *tracker, const struct process *process,
		       const struct rec_unmapped *rec)
{
	const struct mapped *mapped = process__find(process, rec->start);

	if (mapped && mapped->start == rec->start && mapped->image)
		images__learn(tracker->opts.images, &rec->key, mapped->image);
}

/* Finds the file of @mapping by its path in the file system of the process, or of its parent, which
 * is usually the same. The file must be the mapped one. */
static struct image *find_file(struct tracker *tracker, const struct process *process,
			       const struct procfs_mapping *mapping, const struct image_key *key)
{
	const uint32_t pids[] = { process->pid, process->info.parent_pid };
	struct target_file file = TARGET_FILE_NONE;
	struct image *image = NULL;
	struct image_key found;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(pids) && !image; i++) {
		if (!pids[i] || procfs__find_mapping(pids[i], mapping, &file))
			continue;
		found = (struct image_key) { .ino = file.ino,
					     .size = file.size,
					     .ctime_ns = file.ctime_ns };
		target_file__done(&file);
		if (found.ino == mapping->inode && (!key || image_key__is_same_file(&found, key)))
			images__get(tracker->opts.images, pids[i], mapping, &image, NULL);
	}
	return image;
}

/* Records mappings of a program that lives for a millisecond, and has ended when its mappings are
 * read. The next execution will find its files. */
static int take_left(struct tracker *tracker, struct process *process,
		     const struct rec_unmapped *rec)
{
	const struct procfs_mapping *mapping;
	struct image *image;
	size_t at = 0;
	int ret = 0;

	if (!rec->start || process__find(process, rec->start))
		return 0;
	while (!ret && (mapping = recent_mappings__next(tracker->recent, process->pid, &at))) {
		bool requested = mapping->start == rec->start;

		image = find_file(tracker, process, mapping, requested ? &rec->key : NULL);
		if (image && requested)
			ret = insert_mapped(tracker, process,
					    part_of(mapping,
						    recent_mappings__time(tracker->recent, at)),
					    image);
	}
	return ret;
}

int tracker__on_unmapped(struct tracker *tracker, struct process *process,
			 const struct rec_unmapped *rec)
{
	int ret;

	process->program = max_of(process->program, rec->program);
	ret = refresh_seldom(tracker, process, rec->time_ns);
	if (!ret)
		ret = take_left(tracker, process, rec);
	learn_file(tracker, process, rec);
	return ret;
}

static bool maps_image(const struct process *process, const struct image *image)
{
	for (size_t i = 0; i < process->n_mapped; i++)
		if (process->mapped[i].image == image)
			return true;
	return false;
}

int tracker__on_later(struct tracker *tracker, struct process *process, const struct rec_later *rec)
{
	const struct mapped *mapped = mapping_times__find(process, rec->pc, rec->time_ns);
	struct process *at, *next;
	int ret;

	process->program = max_of(process->program, rec->program);
	if (!mapped || !mapped->image)
		return 0;
	ret = images__read_code(tracker->opts.images, mapped->image, rec->pc - mapped->bias);
	if (ret <= 0)
		return ret;
	HASH_ITER (hh, tracker->processes, at, next)
		if (at->space && maps_image(at, mapped->image))
			publish_mappings(tracker, at);
	return 0;
}

/* Records the mapping of a file before further samples are processed, as the process may be gone
 * when its mappings are read. @covers: the mapping covers a recorded mapping. *@ret_urgent: @covers
 * is true and the file is not a program; only the list of mappings shows whether it has code of
 * one. */
static int add_mapped(struct tracker *tracker, struct process *process,
		      const struct procfs_mapping *mapping, const struct mapping_event *event,
		      bool covers, bool *ret_urgent)
{
	int ret = mapping_times__cover(process, event);
	struct image *image = ret ? NULL : find_file(tracker, process, mapping, NULL);

	process->covered_ns = event->time_ns;
	*ret_urgent = covers && !image;
	return image ? insert_mapped(tracker, process, part_of(mapping, event->time_ns), image)
		     : ret;
}

int tracker__on_mmap(struct tracker *tracker, const struct mmap_event *event, bool *ret_urgent)
{
	const struct procfs_mapping mapping = { .start = event->start,
						.end = event->end,
						.offset = event->offset,
						.inode = event->inode,
						.dev_major = event->dev_major,
						.dev_minor = event->dev_minor,
						.path = (char *)event->path };
	const struct mapping_event mapped = { .time_ns = event->time_ns,
					      .start = event->start,
					      .end = event->end,
					      .inode = event->inode,
					      .dev = makedev(event->dev_major, event->dev_minor),
					      .path = event->inode
							      ? mapping_times__path_id(event->path)
							      : 0,
					      .offset = event->offset };
	struct process *process = tracker__find(tracker, event->pid);
	bool covers;

	*ret_urgent = false;
	if (event->inode)
		recent_mappings__add(tracker->recent, event->pid, event->time_ns, &mapping);
	if (!process || !event->time_ns)
		return 0;
	if (mapping_times__remember(process, &mapped))
		return -ENOMEM;
	covers = mapping_times__is_covered(process, &mapped);
	if (!covers) {
		mapping_times__correct(process, &mapped);
		/* A list that was read before the event may contain its mapping. */
		if (!event->inode || !process->space || process__is_ended(process) ||
		    mapping_times__is_mapped(process, event->start, event->end, false))
			return 0;
	}
	if (event->inode)
		return add_mapped(tracker, process, &mapping, &mapped, covers, ret_urgent);
	process->covered_ns = event->time_ns;
	mapping_times__note(process, &mapped);
	*ret_urgent = true;
	return 0;
}
