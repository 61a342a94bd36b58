// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "core/base/util.h"
#include "core/events/alloc.h"
#include "core/events/alloc_function.h"
#include "core/events/alloc_sites.h"
#include "core/events/alloc_watch.h"
#include "core/events/heap.h"
#include "core/events/nearest.h"
#include "core/target/images.h"
#include "core/target/process.h"
#include "core/target/tracker.h"

/* Allocations, by bytes (bpf/alloc.bpf.c): by the functions of any library with a malloc, and by
 * the system calls that map memory. Libraries that targets map later get their probes as soon as
 * braid finds them. A program that is held gets them before it runs. */

struct alloc {
	struct alloc_watch *watch;
	uint64_t seen;	  /* number of the last file that was checked */
	uint32_t n_codes; /* entries of alloc_codes, from 1 */
	size_t n_files;
	uint32_t n_joined;    /* processes that started after the event was attached, ... */
	uint64_t late_ns;     /* ... and the longest time that one of them had no probes */
	bool is_limited;      /* the limit of --max-overhead applies, as there is a file */
	uint64_t followed_ns; /* time of the last search for images */
	const struct runtime_allocator *allocator;
};

const struct runtime_allocator *alloc__find(const struct event *event,
					    const struct event_place *place)
{
	const char *argument = event__argument(&event->spec);

	if (!*argument || !strcmp(argument, "malloc"))
		return &alloc_malloc;
	for (int i = 0; place->runtimes[i]; i++)
		if (!strcmp(place->runtimes[i]->name, argument))
			return place->runtimes[i]->allocator;
	return NULL;
}

/* Passes the functions' code to the kernel half. Once its table is full, inner calls count, too.
 * The summary gives the number of functions that did not fit. */
static int add_codes(struct event *event, const struct elf_file *file, struct alloc_site *sites,
		     size_t n)
{
	int fd = kernel_half__map_fd(event->half, "alloc_codes"), ret;
	struct alloc_function codes[ALLOC_SITES_MAX];
	struct alloc *alloc = event->own;

	ret = alloc_function__find(file, sites, n, codes);
	for (size_t i = 0; !ret && i < n && alloc->n_codes + 1 < ALLOC_CODES_MAX; i++) {
		uint32_t at = ++alloc->n_codes;

		if (bpf_map_update_elem(fd, &at, &codes[i], BPF_ANY))
			ret = -errno;
		sites[i].cookie |= ALLOC_FUNCTION_COOKIE(at);
	}
	for (size_t i = 0; !ret && i < n; i++)
		event->n_left_out += !ALLOC_FUNCTION(sites[i].cookie);
	return ret;
}

static int attach_file(struct event *event, const struct elf_file *file, struct err *err)
{
	struct alloc *alloc = event->own;
	struct alloc_site sites[ALLOC_SITES_MAX];
	struct probe_point points[ALLOC_SITES_MAX];
	size_t n = alloc_sites__find(file, alloc->allocator, sites), i;
	int ret = n ? add_codes(event, file, sites, n) : 0;

	if (ret)
		return err__set(err, ret, "cannot read the code of the allocator in %s: %s",
				file->path, strerror(-ret));
	for (i = 0; i < n; i++)
		points[i] = (struct probe_point) { .file = file,
						   .pc_vaddr = sites[i].vaddr,
						   .cookie = sites[i].cookie };
	if (!n)
		return 0;
	if (!alloc->n_files++)
		event->note[0] = '\0'; /* set by alloc__nothing_found() */
	return alloc_watch__add(alloc->watch, points, n, err);
}

static bool has_mapped(const struct process *process, const struct image *image)
{
	for (size_t i = 0; i < process->n_mapped; i++)
		if (process->mapped[i].image == image)
			return true;
	return false;
}

static void put_late(struct event *event)
{
	const struct alloc *alloc = event->own;
	int n = 0;

	if (event->n_late)
		n = snprintf(event->late, sizeof(event->late),
			     "%u process%s mapped an allocator that got its probes up to %.1f ms "
			     "later: earlier calls are not seen",
			     event->n_late, event->n_late > 1 ? "es" : "", event->late_ns / 1e6);
	if (alloc->n_joined)
		snprintf(event->late + n, sizeof(event->late) - n,
			 "%s%u forked process%s got probes up to %.1f ms later: earlier calls are "
			 "not seen",
			 n ? "; " : "", alloc->n_joined, alloc->n_joined > 1 ? "es" : "",
			 alloc->late_ns / 1e6);
}

/* Records that processes ran with the file mapped before it had probes. It was mapped after the
 * last search for images. */
static void note_late(struct event *event, const struct event_place *place,
		      const struct image *image)
{
	const struct alloc *alloc = event->own;
	uint64_t now = now_ns(), since_ns;
	const struct process *process;
	uint32_t n = 0;

	for (process = tracker__first(place->tracker); process; process = process->hh.next) {
		if (process->state == PROCESS_HELD || !has_mapped(process, image))
			continue;
		since_ns = max_of(process->found_ns, alloc->followed_ns);
		event->late_ns = max_of(event->late_ns, now > since_ns ? now - since_ns : 0);
		n++;
	}
	if (!n)
		return;
	event->n_late += n;
	put_late(event);
}

/* Records that a process ran without probes since it was forked. */
static void note_join(struct event *event, const struct process *process)
{
	struct alloc *alloc = event->own;
	uint64_t now = now_ns();

	if (!event->attached || !event->by_process || now <= process->found_ns)
		return;
	alloc->n_joined++;
	alloc->late_ns = max_of(alloc->late_ns, now - process->found_ns);
	put_late(event);
}

static int attach_in(struct event *event, const struct event_place *place,
		     const struct image *image, const struct elf_file *file, struct err *err)
{
	const struct alloc *alloc = event->own;
	size_t before = alloc->n_files;
	int ret = attach_file(event, file, err);

	if (!ret && event->attached && alloc->n_files > before)
		note_late(event, place, image);
	return ret;
}

/* Attaches to the files that were found since the last call. */
static int attach_images(struct event *event, const struct event_place *place, struct err *err)
{
	struct alloc *alloc = event->own;
	int ret = event__attach_new_files(event, place, &alloc->seen, attach_in, err);

	if (!ret && alloc->n_files && !alloc->is_limited) {
		alloc->is_limited = true;
		alloc_watch__begin_limit(alloc->watch, place->max_overhead_percent);
	}
	alloc->followed_ns = now_ns();
	return ret;
}

static int join(struct event *event, const struct event_place *place, struct err *err)
{
	struct alloc *alloc = event->own;
	uint64_t changes = tracker__changes(place->tracker);
	struct process *process;
	int ret = 0;

	event->by_process = !place->everywhere && !alloc_watch__is_everywhere(alloc->watch);
	if (place->everywhere || event->joined_changes == changes)
		return 0;
	event->joined_changes = changes;
	for (process = tracker__first(place->tracker); !ret && process;
	     process = process->hh.next) {
		if (process__is_ended(process) || event__is_relieved(event, process))
			alloc_watch__leave(alloc->watch, process->pid);
		if (process__is_ended(process))
			continue;
		ret = alloc_watch__join(alloc->watch, process->pid, err);
		if (!process->is_joined && process->state != PROCESS_STARTING &&
		    process->state != PROCESS_HELD)
			note_join(event, process);
	}
	event->joined_serial = tracker__last_serial(place->tracker);
	return ret;
}

static int keep(struct event *event, struct err *err)
{
	struct alloc *alloc = event->own;

	return alloc_watch__keep(alloc->watch, err);
}

/* Returns true if a target mapped a file of the allocator's runtime, which then lacks the
 * function. */
static bool has_runtime(const struct runtime_allocator *allocator, const struct event_place *place)
{
	const struct image *image;

	for (image = images__first(place->images); image; image = image->next)
		for (int i = 0; place->runtimes[i]; i++)
			if (place->runtimes[i]->allocator == allocator &&
			    image->runtimes[i].detected)
				return true;
	return false;
}

int alloc__nothing_found(struct event *event, const struct runtime_allocator *allocator,
			 const struct event_place *place, struct err *err)
{
	const char *name = allocator->functions->name;
	const struct image *image;

	for (image = images__first(place->images); image; image = image->next)
		if (image->file && image->file->fd >= 0 && alloc_sites__is_static(image->file))
			return err__set(
				err, -ENOENT,
				"cannot find an allocator in %s: it is statically linked and has "
				"no symbol %s. Use -e alloc:mmap for memory from the kernel, or -e "
				"uprobe:FILE:0xOFFSET if you have the allocator's offset",
				image->file->path, name);
	/* A program may load its runtime after its start. */
	if (place->launched && allocator != &alloc_malloc && !has_runtime(allocator, place)) {
		snprintf(event->note, sizeof(event->note),
			 "no program has mapped a file with a function %s", name);
		return 0;
	}
	return err__set(err, -ENOENT,
			"no target has mapped a file with a function %s. Use -e alloc:mmap for "
			"memory from the kernel",
			name);
}

int alloc__unknown(const struct event *event, const struct event_place *place, struct err *err)
{
	char names[200] = "";

	for (int i = 0; place->runtimes[i]; i++)
		if (place->runtimes[i]->allocator && !place->runtimes[i]->allocator->why_not)
			snprintf(names + strlen(names), sizeof(names) - strlen(names), ", alloc:%s",
				 place->runtimes[i]->name);
	return err__set(
		err, -EINVAL,
		"there is no event %s. Choose alloc, alloc:usdt, alloc:malloc, alloc:mmap%s",
		event->spec.name, names);
}

static int attach_calls(struct event *event, const struct event_place *place, struct err *err)
{
	struct alloc *alloc = calloc(1, sizeof(*alloc));
	int ret;

	event->own = alloc;
	if (!alloc)
		return err__set(err, -ENOMEM, "out of memory");
	ret = alloc_watch__new(event, place->everywhere, &alloc->watch, err);
	if (!ret)
		ret = join(event, place, err);
	if (ret)
		return ret;
	alloc->allocator = alloc__find(event, place);
	if (!alloc->allocator)
		return alloc__unknown(event, place, err);
	if (alloc->allocator->why_not)
		return err__set(err, -ENOTSUP, "%s: %s", event->spec.name,
				alloc->allocator->why_not);
	ret = attach_images(event, place, err);
	if (!ret && !alloc->n_files)
		ret = alloc__nothing_found(event, alloc->allocator, place, err);
	return ret;
}

static int attach_to(struct event *event, const char *program, const char *tracepoint,
		     struct err *err)
{
	return event__attach_raw(event, program, tracepoint, "to see system calls", err);
}

/* Attaches the calls first: a mapping within a call is not an allocation of its own. */
static int attach_all(struct event *event, const struct event_place *place, struct err *err)
{
	int ret = attach_calls(event, place, err);

	return ret ? ret : attach_to(event, "alloc_on_sys_exit", "sys_exit", err);
}

static int attach_mmap(struct event *event, const struct event_place *place, struct err *err)
{
	int ret = attach_to(event, "alloc_on_sys_exit", "sys_exit", err);

	(void)place;
	return ret ? ret : attach_to(event, "alloc_on_sys_enter", "sys_enter", err);
}

static void detach(struct event *event)
{
	struct alloc *alloc = event->own;

	alloc_watch__free(alloc->watch);
	free(alloc);
}

/* --- its domains: separate kinds, as they need other programs --- */

static const struct chain_program calls[] = { { CHAIN_UPROBE, "alloc_on_call" }, {} };
static const struct chain_program mmaps[] = { { CHAIN_TRACEPOINT, "alloc_on_sys_enter" },
					      { CHAIN_TRACEPOINT, "alloc_on_sys_exit" },
					      {} };
static const struct chain_program all[] = { { CHAIN_UPROBE, "alloc_on_call" },
					    { CHAIN_TRACEPOINT, "alloc_on_sys_exit" },
					    {} };

static const struct event_kind of_calls = {
	.name = "alloc",
	.unit = "bytes",
	.type = CHAIN_UPROBE,
	.programs = calls,
	.slot = EVENT_ALLOC,
	.by_value = true,
	.mapped = true,
	.attach = attach_calls,
	.join = join,
	.follow = attach_images,
	.keep = keep,
	.detach = detach,
};

static const struct event_kind of_mmap = {
	.name = "alloc",
	.unit = "bytes",
	.type = CHAIN_TRACEPOINT,
	.programs = mmaps,
	.slot = EVENT_ALLOC,
	.by_value = true,
	.attach = attach_mmap,
};

/* Accepts any other argument: the runtimes are available when the event is attached. */
static int parse(struct event_spec *spec, struct err *err)
{
	static const char *const names[] = { "malloc", "mmap", "usdt" };
	const char *argument = event__argument(spec);
	struct nearest nearest = nearest__to(argument, strlen(argument));

	spec->kind = !strcmp(argument, "usdt")	 ? &heap_alloc
		     : !strcmp(argument, "mmap") ? &of_mmap
						 : &of_calls;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(argument, names[i]))
			return 0;
		nearest__add(&nearest, names[i]);
	}
	if (nearest.n)
		return err__set(err, -EINVAL, "there is no event %s: did you mean alloc:%s?",
				spec->name, nearest__text(&nearest));
	return 0;
}

const struct event_kind event_alloc = {
	.name = "alloc",
	.argument = "[DOMAIN]",
	.optional = true,
	.unit = "bytes",
	.help = "Allocations, weighted by bytes (-c 512k): alloc, alloc:malloc, alloc:mmap, "
		"alloc:RUNTIME, alloc:usdt",
	.type = CHAIN_UPROBE,
	.programs = all,
	.slot = EVENT_ALLOC,
	.by_value = true,
	.mapped = true,
	.parse = parse,
	.attach = attach_all,
	.join = join,
	.follow = attach_images,
	.keep = keep,
	.detach = detach,
};
