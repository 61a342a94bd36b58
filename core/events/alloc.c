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
#include "core/events/heap.h"
#include "core/events/nearest.h"
#include "core/events/probe_limit.h"
#include "core/target/images.h"
#include "core/target/process.h"
#include "core/target/tracker.h"

/* Allocations, by bytes (bpf/alloc.bpf.c): by the functions of any library with a malloc, and by
 * the system calls that map memory. Libraries that targets map later get their probes as soon as
 * braid finds them. A program that is held gets them before it runs. */

struct alloc {
	struct probe_limit limit;
	bool is_limited;  /* `limit` has begun, as there is a file */
	uint64_t seen;	  /* number of the last file that was checked */
	uint32_t n_codes; /* entries of alloc_codes, from 1 */
	size_t n_files;
	enum trap_kind trap;  /* trap of the most frequent function */
	uint32_t n_mapped;    /* processes that mapped a file before it had probes, ... */
	uint64_t mapped_ns;   /* ... and the longest time that one of them ran without */
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
		event->note[0] = '\0';			 /* set by alloc__nothing_found() */
	alloc->trap = probe_point__trap(&points[n - 1]); /* the last point is the most frequent */
	return probe_set__attach(event->probes, event->program, points, n, err);
}

static bool has_mapped(const struct process *process, const struct image *image)
{
	for (size_t i = 0; i < process->n_mapped; i++)
		if (process->mapped[i].image == image)
			return true;
	return false;
}

/* Adds to the message about late processes, which event__join_probes() sets. */
static void put_mapped(struct event *event)
{
	const struct alloc *alloc = event->own;
	int n = strlen(event->late);

	if (alloc->n_mapped)
		snprintf(event->late + n, sizeof(event->late) - n,
			 "%s%u process%s mapped an allocator that got its probes up to %.1f ms "
			 "later: earlier calls are not seen",
			 n ? "; " : "", alloc->n_mapped, alloc->n_mapped > 1 ? "es" : "",
			 alloc->mapped_ns / 1e6);
}

/* Records that processes ran with the file mapped before it had probes. It was mapped after the
 * last search for images. */
static void note_mapped(struct event *event, const struct event_place *place,
			const struct image *image)
{
	struct alloc *alloc = event->own;
	uint64_t now = now_ns(), since_ns;
	const struct process *process;

	for (process = tracker__first(place->tracker); process; process = process->hh.next) {
		if (process->state == PROCESS_HELD || !has_mapped(process, image))
			continue;
		since_ns = max_of(process->found_ns, alloc->followed_ns);
		alloc->mapped_ns = max_of(alloc->mapped_ns, now > since_ns ? now - since_ns : 0);
		alloc->n_mapped++;
	}
	event__put_late(event);
	put_mapped(event);
}

static int attach_in(struct event *event, const struct event_place *place,
		     const struct image *image, const struct elf_file *file, struct err *err)
{
	const struct alloc *alloc = event->own;
	size_t before = alloc->n_files;
	int ret = attach_file(event, file, err);

	if (!ret && event->attached && alloc->n_files > before)
		note_mapped(event, place, image);
	return ret;
}

/* Attaches to the files that were found since the last call. */
static int attach_images(struct event *event, const struct event_place *place, struct err *err)
{
	struct alloc *alloc = event->own;
	int ret;

	if (event->ended_ns)
		return 0;
	ret = event__attach_new_files(event, place, &alloc->seen, attach_in, err);
	if (!ret && alloc->n_files && !alloc->is_limited) {
		const struct probe_limit_program program = { event->program, alloc->trap };

		alloc->is_limited = true;
		probe_limit__begin(&alloc->limit, event, place->max_overhead_percent, &program, 1);
	}
	alloc->followed_ns = now_ns();
	return ret;
}

static int join(struct event *event, const struct event_place *place, struct err *err)
{
	uint32_t n_late = event->n_late;
	int ret = event__join_probes(event, place, err);

	if (event->n_late > n_late)
		put_mapped(event);
	return ret;
}

/* Ends the event if its probes exceed the limit, mappings included: the samples are then those of
 * all allocations up to one moment. */
static int keep(struct event *event, struct err *err)
{
	struct alloc *alloc = event->own;
	uint64_t now = now_ns();

	(void)err;
	if (!probe_limit__is_exceeded(&alloc->limit, now))
		return 0;
	event->ended_ns = now;
	kernel_half__end_allocs(event->half);
	probe_limit__detach(&alloc->limit, &event->probes);
	snprintf(
		event->note, sizeof(event->note),
		"probing every call took %.0f %% of the machine, and --max-overhead is %g: calls "
		"were recorded for %.3g s, all of them, and then no more. libbraid-heap.so records "
		"for the whole time at little cost: start the program with "
		"LD_PRELOAD=libbraid-heap.so and use -e alloc:usdt. Or use --max-overhead none",
		probe_limit__cost(&alloc->limit), alloc->limit.percent,
		probe_limit__seconds(&alloc->limit));
	return 0;
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
	alloc->allocator = alloc__find(event, place);
	if (!alloc->allocator)
		return alloc__unknown(event, place, err);
	if (alloc->allocator->why_not)
		return err__set(err, -ENOTSUP, "%s: %s", event->spec.name,
				alloc->allocator->why_not);
	ret = event__open_probes(event, place, err);
	if (!ret)
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

	probe_limit__done(&alloc->limit);
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
